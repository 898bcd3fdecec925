// demo-report/index.html: the graphs as pictures, the training curve, the minifier's path. One self-contained page.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Graphviz } from '@hpcc-js/wasm-graphviz'
import { FxGraphDrawer } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'

export async function writeReport(directory, { trained, graphs, compiled, hunt }) {
  const graphviz = await Graphviz.load()
  const picture = (gm, name) => graphviz.layout(new FxGraphDrawer(gm, name).getDotGraph(), 'svg', 'dot').replace(/^[\s\S]*?(?=<svg)/, '')
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tensorfx demo</title>
<style>
  :root { color-scheme: light; --ink: #1d2733; --soft: #5b6b7d; --line: #dde4ec; --a: #2563eb; --b: #ea580c; }
  body { margin: 0; background: #f6f8fb; color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
  main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 64px; }
  h1 { margin: 0; font-size: 28px; } h2 { margin: 0 0 4px; font-size: 19px; } p { margin: 0 0 14px; color: var(--soft); }
  section { background: #fff; border: 1px solid var(--line); border-radius: 12px; padding: 22px 24px; margin-top: 22px; }
  .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 14px; margin-top: 20px; }
  .tile { background: #fff; border: 1px solid var(--line); border-radius: 12px; padding: 14px 18px; }
  .tile b { display: block; font-size: 26px; } .tile span { color: var(--soft); }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 20px; } figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 8px; }
  .scroll { overflow: auto; max-height: 620px; border: 1px solid var(--line); border-radius: 8px; padding: 10px; text-align: center; } .scroll svg { max-width: 100%; height: auto; }
  pre { background: #0f172a; color: #e2e8f0; border-radius: 8px; padding: 14px 16px; overflow: auto; font-size: 13px; margin: 0; }
  table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
  .bar { background: var(--b); height: 12px; border-radius: 3px; } svg text { font-family: system-ui, sans-serif; } .scroll svg text { font: 9.5px Helvetica, Arial, sans-serif; }
</style>
<main>
<h1>tensorfx demo</h1>
<p>A CNN on 8x8 digits: captured, rewritten, compiled, and a wrong compile shrunk to its cause.</p>
<div class="tiles">
  ${tile(`${(100 * trained.accuracy).toFixed(2)}%`, 'test accuracy')}
  ${tile(`${trained.speedup.toFixed(1)}x`, 'training step, compiled against eager')}
  ${tile(`${compiled.speedup.toFixed(1)}x`, 'inference, compiled against eager')}
  ${tile(`${hunt.steps[0].nodes} → ${hunt.minimal.graph.nodes.length}`, `nodes, minified in ${hunt.queries} queries`)}
</div>
<section><h2>a. Training</h2><p>Loss of each batch (left axis) and test accuracy after each epoch (right axis). The whole step runs as one compiled function.</p>${curve(trained.curve)}</section>
<section><h2>b. The graph before and after fuse()</h2><p>Batch norm is folded into the convolutions: ${graphs.traced.graph.nodes.length} nodes become ${graphs.fused.graph.nodes.length}. <a href="fuse.html">Open the graph with what changed.</a></p>
<div class="pair"><figure><figcaption>Traced</figcaption><div class="scroll">${picture(graphs.traced, 'traced')}</div></figure><figure><figcaption>Fused</figcaption><div class="scroll">${picture(graphs.fused, 'fused')}</div></figure></div></section>
<section><h2>c. Kernels of the compiled model</h2><p>Each row is one WebAssembly kernel and the operators fused into it.</p>
<table><tr><th>kernel</th><th>kind</th><th>operators</th></tr>${compiled.kernels.map((k, i) => `<tr><td>${i}</td><td>${k.kind}</td><td>${escape(k.ops.join(' + '))}</td></tr>`).join('')}</table></section>
<section><h2>d. The minifier's path</h2><p>From the captured graph to the smallest one on which the wrong backend still fails.</p>
<table><tr><th>strategy</th><th>nodes</th><th>inputs</th><th style="width:45%"></th></tr>${hunt.steps
    .map(
      (s) =>
        `<tr><td>${escape(s.strategy)}${s.granularity > 0 ? ` (G: ${s.granularity})` : ''}</td><td class="n">${s.nodes}</td><td class="n">${s.inputs}</td><td><div class="bar" style="width:${(100 * s.nodes) / hunt.steps[0].nodes}%"></div></td></tr>`,
    )
    .join('')}</table>
<p style="margin-top:14px">The minimal graph:</p><pre>${escape(String(hunt.minimal.graph))}</pre></section>
</main>
</html>
`
  const path = join(directory, 'index.html')
  await writeFile(path, page)
  await writeFile(join(directory, 'fuse.html'), graphPage(graphs.fused, { title: 'fuse(): before and after', before: graphs.traced }))
  return path
}

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const tile = (value, label) => `<div class="tile"><b>${value}</b><span>${escape(label)}</span></div>`

/** Loss and accuracy over the steps as inline SVG. */
function curve(points) {
  const [width, height, left, right, top, bottom] = [1080, 300, 46, 46, 12, 30]
  const last = points.at(-1).step
  const most = Math.max(...points.map((p) => p.loss))
  const x = (step) => left + ((width - left - right) * step) / last
  const y = (share) => top + (height - top - bottom) * (1 - share)
  const losses = points.filter((p) => p.accuracy === undefined).map((p) => `${x(p.step).toFixed(1)},${y(p.loss / most).toFixed(1)}`)
  const accuracies = points.filter((p) => p.accuracy !== undefined)
  const grid = [0, 0.25, 0.5, 0.75, 1]
    .map(
      (s) =>
        `<line x1="${left}" x2="${width - right}" y1="${y(s)}" y2="${y(s)}" stroke="#e5eaf1"/><text x="${left - 8}" y="${y(s) + 4}" text-anchor="end" font-size="12" fill="#2563eb">${(s * most).toFixed(1)}</text><text x="${width - right + 8}" y="${y(s) + 4}" font-size="12" fill="#ea580c">${100 * s}%</text>`,
    )
    .join('')
  return `<svg viewBox="0 0 ${width} ${height}" width="100%" role="img" aria-label="training curve">${grid}
<polyline fill="none" stroke="#2563eb" stroke-width="2" points="${losses.join(' ')}"/>
<polyline fill="none" stroke="#ea580c" stroke-width="2" points="${accuracies.map((p) => `${x(p.step).toFixed(1)},${y(p.accuracy).toFixed(1)}`).join(' ')}"/>
${accuracies.map((p) => `<circle cx="${x(p.step).toFixed(1)}" cy="${y(p.accuracy).toFixed(1)}" r="3.5" fill="#ea580c"/>`).join('')}
<text x="${width / 2}" y="${height - 6}" text-anchor="middle" font-size="12" fill="#5b6b7d">training step (${last} in all): loss blue, test accuracy orange</text></svg>`
}
