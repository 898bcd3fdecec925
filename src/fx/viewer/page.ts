// A graph as a single HTML page, which needs no network and no other file.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { graphView } from './graphView.ts'
import type { GraphView } from './graphView.ts'
import { PAGE_SCRIPT } from './pageScript.ts'
import { PAGE_STYLE } from './pageStyle.ts'

/** Options of {@link graphPage}. */
export interface GraphPageOptions {
  /** The title of the page. Default: the class name of the module. */
  readonly title?: string
  /** An earlier version of the graph. The page then shows what was added, removed and changed since. */
  readonly before?: GraphModule
}

/**
 * The text of an HTML page that shows a graph. The graph can be panned (drag), zoomed (wheel, pinch, `+` and `-`), fitted to the window (`f`) and searched (`/`), and
 * its modules expanded and collapsed. For each node the page shows its generated code, the user's line, its value, arguments and users. With `before` it shows the
 * difference of two graphs.
 *
 *     await writeFile('graph.html', graphPage(gm))
 *     await writeFile('fused.html', graphPage(fused, { before: gm }))
 */
export function graphPage(gm: GraphModule, options: GraphPageOptions = {}): string {
  checkCount('graphPage', arguments, 2)
  checkGraphModule('graphPage', gm)
  checkOptions('graphPage', options, { title: true, before: true })
  const title = options.title ?? gm.className
  return pageOf(graphView(gm, title, options.before ?? null))
}

const KINDS = ['placeholder', 'get_attr', 'call_module', 'call_function', 'call_method', 'output']

function pageOf(view: GraphView): string {
  const kinds = KINDS.filter((kind) => view.nodes.some((n) => n.op === kind))
  const legend = kinds.map((kind) => `<span><i style="background:var(--${kind})"></i>${kind}</span>`).join('')
  const counts = view.isDiff
    ? (['added', 'removed', 'changed'] as const)
        .map((c) => `<span class="${c}">${view.nodes.filter((n) => n.change === c).length} ${c}</span>`)
        .join(' ')
    : `${view.nodes.length} nodes`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(view.name)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<header>
  <h1>${escape(view.name)}</h1><span class="count">${counts}</span>
  <input id="search" type="search" placeholder="Search  ( / )" aria-label="Search nodes"><span id="hits" role="status"></span>
  <button id="fit" title="f">Fit</button><button id="open">Open all</button><button id="close">Close all</button>
  <span class="grow"></span><span class="legend">${legend}</span>
</header>
<main id="canvas"><svg aria-label="graph"><defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="var(--edge)"/></marker></defs></svg><div class="zoom"><button id="in" title="+" aria-label="Zoom in">+</button><button id="out" title="-" aria-label="Zoom out">−</button></div></main>
<aside>
  <div class="tabs" role="tablist"><button role="tab" data-tab="panel" aria-selected="true">Node</button><button role="tab" data-tab="code" aria-selected="false">Code</button></div>
  <section id="panel"><p class="label">Click a node to see where it comes from, what it computes, and its users.</p></section>
  <section id="code"${view.isDiff ? ' class="diff"' : ''} hidden></section>
</aside>
<script id="data" type="application/json">${JSON.stringify(view).replaceAll('<', '\\u003c')}</script>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
