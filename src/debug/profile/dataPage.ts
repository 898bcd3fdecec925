// Pages of a profile: single HTML files in the colours of graph pages. Their program is in page/.
import { escapeHtml, htmlDocument, sheetOf } from '../../fx/viewer/document.ts'
import { PAGE_SCRIPT, PAGE_STYLE } from './generated/page.ts'
import type { ProfileData } from './page/data.ts'

/** What differs from page to page. `tools` and `body` are HTML. */
export interface DataPage {
  readonly title: string
  /** Beside the title. */
  readonly figures: string
  readonly tools: string
  readonly body: string
  readonly data: ProfileData
}

export const dataPage = ({ title, figures, tools, body, data }: DataPage): string =>
  htmlDocument({
    title,
    sheet: sheetOf(PAGE_STYLE),
    script: PAGE_SCRIPT,
    data,
    body: `<header><h1 title="${escapeHtml(title)}">${escapeHtml(title)}</h1><span class="figures">${escapeHtml(figures)}</span><span class="grow"></span><span class="tools">${tools}</span></header>
<main>${body}</main>
<noscript>This page draws with JavaScript.</noscript>`,
  })
