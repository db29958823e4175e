// While a reader types at Ctrl+K: the pages called so. Their text is searched at Enter.
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
    const count = ["No page is", "One page is"][called.length] ?? `${called.length} pages are`;
    enter.textContent = words.length ? `${count} called so. Enter searches the text of every page.` : "";
    dialog.append(list, enter);
  });
}
