// The page of a graph but for its program and style: its text and its data, with the layout of what is seen at first. Pages write those of files that they open.
import { escapeHtml } from './document.ts'
import type { PageParts } from './document.ts'
import type { GraphCosts } from './cost.ts'
import { Arranger, openAtFirst } from './layout/arrange.ts'
import { categoryOf } from './layout/boxes.ts'
import { Layouts } from './layout/layered.ts'
import { pack, unpack } from './pageData.ts'
import type { PackedPage } from './pageData.ts'
import type { GraphView } from './view.ts'
import { FILES, OPEN_BUTTON } from './fileParts.ts'

/** The data of a page: the graph, and the layouts of what is seen at first, of all groups open and of none. */
function dataOf(view: GraphView, costs: GraphCosts | null): PackedPage {
  const graph = pack(view)
  const layouts = new Layouts()
  const arranger = new Arranger(unpack(graph), layouts)
  for (const open of [openAtFirst(arranger.tree), new Set(arranger.tree.groups), new Set<never>()]) arranger.arrange(open)
  return { graph, layouts: layouts.toJSON(), costs }
}

/** The parts of a page. */
export function graphParts(view: GraphView, costs: GraphCosts | null): Omit<PageParts, 'sheet' | 'script'> {
  const data = dataOf(view, costs)
  const title = escapeHtml(view.name)
  const categories = [...new Set(unpack(data.graph).nodes.map(categoryOf))]
  const legend = categories.map((name) => `<span><i style="background:var(--category-${name})"></i>${name}</span>`).join('')
  const heat = costs === null ? '' : '<span><i style="background:var(--category-activation)"></i>time (heat)</span>'
  const count = view.isDiff
    ? (['added', 'removed', 'changed'] as const)
        .map((change) => `<span class="${change}">${view.nodes.filter((n) => n.change === change).length} ${change}</span>`)
        .join(' ')
    : `${view.nodes.length} nodes`
  const body = `${header(title, count)}
<main><canvas id="canvas" tabindex="0" aria-label="The graph. Arrow keys go from node to node."></canvas>
<div class="legend">${legend}${heat}</div>
<div class="corner"><canvas id="minimap" aria-label="The whole graph, and the part that is in view"></canvas><div class="zoom"><button type="button" id="in" title="Zoom in (+)" aria-label="Zoom in">+</button><button type="button" id="out" title="Zoom out (-)" aria-label="Zoom out">−</button></div></div></main>
<aside id="side" hidden>
<div class="tabs" role="tablist"><button type="button" role="tab" data-tab="panel" aria-selected="true">Node</button><button type="button" role="tab" data-tab="code" aria-selected="false">Code</button><span class="grow"></span><button type="button" id="close-side" aria-label="Close">✕</button></div>
<div id="panel"></div><div id="code" hidden></div>
</aside>
${HELP}
<div id="said" class="unseen" role="status"></div>
<div id="print"></div>
${FILES}
<noscript>This page draws the graph with JavaScript.</noscript>`
  return { title: view.name, body, data }
}

const header = (title: string, count: string): string => `<header>
<h1 title="${title}">${title}</h1><span class="count">${count}</span>
<span id="changes" hidden><button type="button" id="previous" title="Previous change (p)" aria-label="Previous change">‹</button><span id="change"></span><button type="button" id="next" title="Next change (n)" aria-label="Next change">›</button></span>
<span class="grow"></span>
<span class="find"><input id="search" type="search" placeholder="Search  /" aria-label="Search nodes" autocomplete="off" spellcheck="false"><select id="kind" aria-label="Kind"><option value="">all kinds</option></select><span id="hits" role="status"></span><span id="results" hidden></span></span>
<span class="tools"><button type="button" id="fit" title="Show everything (f)">Fit</button><button type="button" id="open-all" title="Open all modules (o)">Open all</button><button type="button" id="close-all" title="Close all modules (c)">Close all</button><button type="button" id="show-code" title="Generated code (g)">Code</button>${OPEN_BUTTON}<span class="menu"><button type="button" id="show-export" title="Save or share">Save</button><span id="export" hidden><button type="button" id="export-svg">SVG picture</button><button type="button" id="export-png">PNG picture</button><button type="button" id="copy-link">Copy link to this view</button></span></span><button type="button" id="show-help" title="Keys (?)" aria-label="Help">?</button></span>
</header>`

const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [['/'], 'search; kind:relu finds nodes of a kind; Enter goes to the next result'],
  [['f'], 'show everything'],
  [['0'], 'back to a readable size'],
  [['+', '-'], 'zoom; also the wheel, or two fingers'],
  [['↑', '↓'], 'to the first input, or the first user'],
  [['←', '→'], 'to the previous or next node, in graph order'],
  [['n', 'p'], 'next or previous change, in a difference'],
  [['o', 'c'], 'open or close all modules; a click does it for one'],
  [['g'], 'the generated code'],
  [['e'], 'open a file: a graph or weights; or drop it on the page'],
  [['Esc'], 'close the panel and clear the search'],
]

const HELP = `<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keys</h2><dl>${KEYS.map(
  ([keys, what]) => `<dt>${keys.map((key) => `<kbd>${key}</kbd>`).join(' ')}</dt><dd>${what}</dd>`,
).join('')}</dl><button type="button" id="close-help">Close</button></dialog>`
