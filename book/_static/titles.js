// While a reader types at Ctrl+K: the pages whose titles match. Enter searches their text.
{
  const dialog = document.getElementById("pst-search-dialog"), field = dialog?.querySelector("input");
  const titles = [...document.querySelectorAll(".bd-sidebar-primary nav a[href]")];
  const list = document.createElement("ul"), enter = document.createElement("p");
  list.className = "tt-titles";
  enter.setAttribute("role", "status");
  field?.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const called = titles.filter((link) => words.every((word) => link.textContent.toLowerCase().includes(word))).slice(0, words.length && 6);
    list.replaceChildren(...called.map(({ href, textContent }) => {
      const item = document.createElement("li"), link = Object.assign(document.createElement("a"), { href, textContent });
      item.append(link);
      return item;
    }));
    const count = ["No title matches", "One title matches"][called.length] ?? `${called.length} titles match`;
    enter.textContent = words.length ? `${count}. Press Enter to search the text of every page.` : "";
    dialog.append(list, enter);
  });
}
