// The page of a run as a single HTML file, which needs no network and no other file. Its program is in page/, which is bundled into generated/page.ts.
import { escapeHtml, htmlDocument, sheetOf } from '../../fx/viewer/document.ts'
import type { Report } from './data.ts'
import { PAGE_SCRIPT, PAGE_STYLE } from './generated/page.ts'

/** The page of one run, or of two that are compared, the earlier one first. */
export function reportHtml(reports: readonly [Report] | readonly [before: Report, after: Report]): string {
  const { title, totals, rows } = reports[reports.length - 1] ?? reports[0]
  const count = reports.length === 1 ? `${totals.calls} calls, ${totals.graphs} graphs, ${rows.length} rows` : `compared with ${reports[0].title}`
  const body = `<header><h1 title="${escapeHtml(title)}">${escapeHtml(title)}</h1><span class="count">${escapeHtml(count)}</span></header>
<main id="runs"></main>
<aside id="side" hidden><div class="tabs"><span class="grow"></span><button type="button" id="close-side" aria-label="Close">✕</button></div><div id="panel"></div></aside>
<noscript>This page shows the run with JavaScript.</noscript>`
  return htmlDocument({ title: `${title}: a run`, sheet: sheetOf(PAGE_STYLE), body, data: reports, script: PAGE_SCRIPT })
}
