// node build.mjs: bundles the editor into one module, with the licences of what it holds.

import { build } from "esbuild";
import { readdirSync, readFileSync } from "node:fs";

const modules = new URL("node_modules/", import.meta.url);
const licence = (name) => readFileSync(new URL(`${name}/LICENSE`, modules), "utf8").trim();
const codemirror = licence("@codemirror/state");
const versions = readdirSync(new URL("@codemirror/", modules))
  .map((name) => JSON.parse(readFileSync(new URL(`@codemirror/${name}/package.json`, modules), "utf8")))
  .map(({ name, version }) => `${name} ${version}`).join(", ");

await build({
  entryPoints: [new URL("editor.mjs", import.meta.url).pathname],
  outfile: new URL("../../_static/live/editor.js", import.meta.url).pathname,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  banner: { js: `/* Built by \`make editor\` from book/_runtime/editor. ${versions}.\n\n${codemirror}\n*/` },
});
