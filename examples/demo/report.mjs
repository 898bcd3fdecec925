// demo-report/index.html: the training curve, the graph before and after, the kernels, the minifier's path. One self-contained page, light and dark.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { graphPage } from 'tensorfx/fx/viewer'
import { STYLE } from './reportStyle.mjs'

export async function writeReport(directory, { trained, graphs, compiled, hunt }) {
  const difference = graphPage(graphs.fused, { title: 'fuse(): before and after', before: graphs.traced })
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tensorfx demo</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>tensorfx demo</h1>
<p>A CNN on 8x8 digits: captured, rewritten, compiled, and a wrong compile shrunk to its cause.</p>
<div class="tiles">
  ${tile(`${(100 * trained.accuracy).toFixed(2)}%`, 'test accuracy')}
  ${tile(`${trained.speedup.toFixed(1)}x`, 'training step, compiled against eager')}
  ${tile(`${compiled.speedup.toFixed(1)}x`, 'inference, compiled against eager')}
  ${tile(`${hunt.steps[0].nodes} → ${hunt.minimal.graph.nodes.length}`, `nodes, minified in ${hunt.queries} queries`)}
</div>
<section><h2>a. Training</h2><p>Loss of each batch and test accuracy after each epoch. The whole step runs as one compiled function.</p>${curve(trained.curve)}</section>
<section><h2>b. The graph before and after fuse()</h2><p>Batch norm is folded into the convolutions: ${graphs.traced.graph.nodes.length} nodes become ${graphs.fused.graph.nodes.length}. <kbd>n</kbd> goes to the next change, Ctrl and the wheel zoom. <a href="fuse.html">Open it as a page of its own.</a></p>
<iframe title="The graph with what fuse() has changed" srcdoc="${attribute(difference)}"></iframe></section>
<section><h2>c. Kernels of the compiled model</h2><p>Each row is one WebAssembly kernel and the operators fused into it.</p>
<div class="scroll"><table><tr><th>kernel</th><th>kind</th><th>operators</th></tr>${compiled.kernels.map((k, i) => `<tr><td>${i}</td><td>${k.kind}</td><td>${escape(k.ops.join(' + '))}</td></tr>`).join('')}</table></div></section>
<section><h2>d. The minifier's path</h2><p>From the captured graph to the smallest one on which the wrong backend still fails.</p>
<div class="scroll"><table><tr><th>strategy</th><th class="n">nodes</th><th class="n">inputs</th><th class="wide"></th></tr>${hunt.steps
    .map(
      (s) =>
        `<tr><td>${escape(s.strategy)}${s.granularity > 0 ? ` (G: ${s.granularity})` : ''}</td><td class="n">${s.nodes}</td><td class="n">${s.inputs}</td><td><div class="bar" style="width:${(100 * s.nodes) / hunt.steps[0].nodes}%"></div></td></tr>`,
    )
    .join('')}</table></div>
<p>The minimal graph:</p><pre>${escape(String(hunt.minimal.graph))}</pre></section>
</main>
</body>
</html>
`
  const path = join(directory, 'index.html')
  await writeFile(path, page)
  await writeFile(join(directory, 'fuse.html'), difference)
  return path
}

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const attribute = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
const tile = (value, label) => `<div class="tile"><b>${value}</b><span>${escape(label)}</span></div>`

/** Loss (left axis) and accuracy (right axis) over the steps. The lines stretch with the page; the labels keep their size. */
function curve(points) {
  const last = points.at(-1).step
  const most = Math.max(...points.map((p) => p.loss))
  const x = (step) => ((1000 * step) / last).toFixed(1)
  const y = (share) => (300 * (1 - share)).toFixed(1)
  const accuracies = points.filter((p) => p.accuracy !== undefined)
  const losses = points.filter((p) => p.accuracy === undefined)
  const path = (list, share) => list.map((p, i) => `${i === 0 ? 'M' : 'L'}${x(p.step)} ${y(share(p))}`).join('')
  const shares = [0, 0.25, 0.5, 0.75, 1]
  const grid = shares.map((s) => `<path class="grid" d="M0 ${y(s)}H1000"/>`).join('')
  const labels = (side, text) =>
    `<div class="axis ${side}">${shares.map((s) => `<span style="top:${100 * (1 - s)}%">${text(s)}</span>`).join('')}</div>`
  return `<div class="legend"><span class="loss">loss</span><span class="accuracy">test accuracy</span></div>
<div class="chart">${labels('left', (s) => (s * most).toFixed(1))}
<svg viewBox="0 0 1000 300" preserveAspectRatio="none" role="img" aria-label="Loss falls and accuracy rises over ${last} training steps">${grid}
<path class="loss" d="${path(losses, (p) => p.loss / most)}"/><path class="accuracy" d="${path(accuracies, (p) => p.accuracy)}"/></svg>
${labels('right', (s) => `${100 * s}%`)}</div>
<p class="steps"><span>0</span><span>training steps</span><span>${last}</span></p>`
}
