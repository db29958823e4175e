// The articles of a page as XML, their drawings in colours that need no style sheet.
// "color(srgb 0.5 1 0)", which is what a mixture of colours comes to, as old readers know it
const plain = (value) =>
  value.replace(/color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)\)/g, (_, ...rgb) => {
    const bytes = rgb.slice(0, 3).map((part) => Math.round(Number(part) * 255));
    return `rgb(${bytes.join(", ")})`;
  });

globalThis.articlesAsXml = () => {
  const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"];
  const WRITTEN = ["fill", "font-size", "font-style", "font-weight", "text-anchor"];
  const XLINK = "http://www.w3.org/1999/xlink";

  for (const svg of document.querySelectorAll("article svg")) {
    for (const element of svg.querySelectorAll("path, rect, circle, ellipse, line, polyline, polygon, use, text, tspan")) {
      const looks = getComputedStyle(element);
      const names = element.matches("text, tspan") ? WRITTEN : DRAWN;
      const values = names.map((name) => [name, plain(looks.getPropertyValue(name))]);
      for (const [name, value] of values) {
        element.style.removeProperty(name);
        element.setAttribute(name, value);
      }
      element.style.removeProperty("font-family");
      if (!element.getAttribute("style")) element.removeAttribute("style");
      if (!element.matches("text, tspan")) element.removeAttribute("class");
    }
    for (const style of svg.querySelectorAll("style")) style.remove();
    for (const link of svg.querySelectorAll("[href]")) {
      link.setAttributeNS(XLINK, "xlink:href", link.getAttribute("href"));
      link.removeAttribute("href");
    }
    const { width, height } = svg.viewBox.baseVal;
    svg.removeAttribute("style");
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
  }
  const xml = new XMLSerializer();
  return Object.fromEntries([...document.querySelectorAll("article")].map((each) => [each.id, xml.serializeToString(each)]));
};
