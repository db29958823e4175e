// What a page keeps between visits, by name: in the browser's private files, or where it has none, in its cache.

// {get(name) -> Blob or null, put(name, blob), clear()}; null where the browser keeps nothing. What was put
// is there whole or not at all, but for an empty file.
export async function openStore(name = "tinytorch-model") {
  return await inFiles(name) ?? await inCache(name);
}

async function inFiles(place) {
  if (!globalThis.FileSystemFileHandle?.prototype.createWritable) return null;
  let root;
  try {
    root = await navigator.storage.getDirectory();
  } catch {
    return null; // in some private windows
  }
  const folder = (options) => root.getDirectoryHandle(place, options);
  return {
    async get(name) {
      try {
        return await (await (await folder()).getFileHandle(name)).getFile();
      } catch (error) {
        if (error.name === "NotFoundError") return null;
        throw error;
      }
    },
    async put(name, blob) {
      const handle = await (await folder({ create: true })).getFileHandle(name, { create: true });
      const file = await handle.createWritable();
      try {
        await file.write(blob);
        await file.close();
      } catch (error) {
        await file.abort().catch(() => {});
        throw error;
      }
    },
    async clear() {
      await root.removeEntry(place, { recursive: true }).catch((error) => {
        if (error.name !== "NotFoundError") throw error;
      });
    },
  };
}

async function inCache(place) {
  const cache = await globalThis.caches?.open(place).catch(() => null);
  if (!cache) return null;
  const address = (name) => new URL(`/${place}/${name}`, location.href);
  return {
    get: async (name) => (await (await cache.match(address(name)))?.blob()) ?? null,
    put: (name, blob) => cache.put(address(name), new Response(blob)),
    async clear() {
      const keys = await cache.keys();
      await Promise.all(keys.map((key) => cache.delete(key)));
    },
  };
}
