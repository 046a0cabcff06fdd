// Sets the chosen colours before the first paint. It is no module, so that nothing is drawn in the other colours first.
//
// It reads one word and refuses every other: `light`, `dark`; anything else follows the system.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("longhaul.theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
