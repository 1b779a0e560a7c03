"use strict";
// A classic script in the head, so that a chosen theme is there before the page is drawn.
{
  const root = document.documentElement, prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const kept = (action) => {
    try {
      return action(localStorage);
    } catch {
      return null; // a browser may keep nothing
    }
  };
  const chosen = kept((storage) => storage.getItem("exmlds-theme"));
  if (["light", "dark"].includes(chosen)) root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `${button.textContent} theme`);
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept((storage) => storage.setItem("exmlds-theme", root.dataset.theme));
      name();
    });
    prefersDark.addEventListener("change", name);
    name();
  });
}
