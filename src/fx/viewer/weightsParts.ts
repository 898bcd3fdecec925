// The page of a file of weights but for its program and style.
import { sizeText } from '../../protocol/sizeText.ts'
import { escapeHtml } from './document.ts'
import type { PageParts } from './document.ts'
import { FILES, OPEN_BUTTON } from './fileParts.ts'
import { isTensorItem, packWeights } from './weights.ts'
import type { WeightsView } from './weights.ts'

/** The parts of a page. */
export function weightsParts(view: WeightsView): Omit<PageParts, 'sheet' | 'script'> {
  const tensors = view.items.filter(isTensorItem)
  const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0)
  const unread = tensors.filter(({ statistics, shape }) => statistics === null && !shape.includes(0)).length
  const title = escapeHtml(view.name)
  const count = `${tensors.length} ${tensors.length === 1 ? 'tensor' : 'tensors'}, ${sizeText(bytes)}${unread === 0 ? '' : `, ${unread} without statistics`}`
  const body = `<header class="weights">
<h1 title="${title}">${title}</h1><span class="count">${count}</span><span class="grow"></span>
<span class="find"><input id="search" type="search" placeholder="Search  /" aria-label="Search tensors" autocomplete="off" spellcheck="false"><span id="hits" role="status"></span></span>
<span class="tools"><button type="button" id="open-all" title="Open all groups (o)">Open all</button><button type="button" id="close-all" title="Close all groups (c)">Close all</button>${OPEN_BUTTON}</span>
</header>
<main><div id="tree" role="tree" tabindex="0" aria-label="The tensors. Arrow keys go from one to the next, and open and close groups."></div></main>
<aside id="side" hidden><div class="tabs"><span class="grow"></span><button type="button" id="close-side" aria-label="Close">✕</button></div><div id="panel"></div></aside>
<div id="said" class="unseen" role="status"></div>
<div id="print"></div>
${FILES}
<noscript>This page lists the tensors with JavaScript.</noscript>`
  return { title: view.name, body, data: { weights: packWeights(view) } }
}
