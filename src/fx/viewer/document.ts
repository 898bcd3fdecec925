// The frame of pages: a single HTML file with its style, colours for light and dark mode, data and program, that needs no network.
import { DARK, LIGHT, properties } from './theme.ts'

/** What a page consists of. */
export interface PageParts {
  readonly title: string
  /** The whole style sheet, see {@link sheetOf}. */
  readonly sheet: string
  /** HTML. */
  readonly body: string
  /** Is written as JSON into the element `#data`. */
  readonly data: unknown
  readonly script: string
}

/** A style with the colours of pages for light and dark mode. */
export const sheetOf = (style: string): string =>
  `:root { color-scheme: light dark; ${properties(LIGHT)} } @media (prefers-color-scheme: dark) { :root { ${properties(DARK)} } } ${style}`

/** The text of a page. */
export const htmlDocument = ({ title, sheet, body, data, script }: PageParts): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${sheet}</style>
</head>
<body>
${body}
<script id="data" type="application/json">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
<script id="program">${script}</script>
</body>
</html>
`

/** A text as HTML. */
export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
