// Returns what is wrong with the page's layout, a sentence each: texts that
// cover part of one another, charts with text beyond their edge, and a page
// wider than the window.
(() => {
  const wrong = [];
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("title, style, details:not([open]) > :not(summary)")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const inChart = element instanceof SVGElement;
    const rects = inChart ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    for (const r of rects) {
      if (r.width && r.height) boxes.push({ r, node, element, text: node.data.trim().slice(0, 40) });
      if (!inChart) continue;
      const edge = element.ownerSVGElement.getBoundingClientRect();
      if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1)
        wrong.push(`"${node.data}" lies beyond the edge of its chart`);
    }
  }
  boxes.sort((a, b) => a.r.top - b.r.top);
  const slack = 1.5; // of line boxes, which are higher than their letters
  for (let i = 0; i < boxes.length; i++) {
    const a = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j].r.top < a.r.bottom - slack; j++) {
      const b = boxes[j];
      if (a.node === b.node) continue;
      const x = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left);
      const y = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
      // The glyphs of a label reach from the top of its figures to the line.
      const rise = a.element instanceof SVGElement ? 0.3 * Math.min(a.r.height, b.r.height) : slack;
      if (x > slack && y > rise) wrong.push(`"${a.text}" and "${b.text}" overlap by ${x.toFixed(1)} × ${y.toFixed(1)}`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);
  return wrong;
})();
