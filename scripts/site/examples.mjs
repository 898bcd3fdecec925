// The examples of the guides in the playground: a link after each that runs there, and a page that lists all, with the reason where one does not.
import { code, heading, link, soft, table, text } from '../../dist/docs/pages/page.js'

export const placeOf = ({ name }) => `example=${name}`

const toPlayground = (example, words) => link({ page: 'playground', anchor: placeOf(example) }, words)

/** A page with links to the playground. `guides`: the examples of all pages. */
export function withExampleLinks({ file, page }, guides) {
  const mine = guides.filter((one) => one.file === file && one.why === null)
  if (mine.length === 0) return page
  return {
    ...page,
    blocks: page.blocks.flatMap((block) => {
      const example = block.kind === 'code' ? mine.find((one) => one.code.trimEnd() === block.text.trimEnd()) : undefined
      return example === undefined ? [block] : [block, text(soft(toPlayground(example, 'Run')))]
    }),
  }
}

/** The page that lists the examples. */
export function examplesPage(guides, pageOf) {
  const titles = [...new Set(guides.map(({ title }) => title))]
  const runs = guides.filter(({ why }) => why === null)
  return {
    ...{ path: 'playground-examples', title: 'Examples in the playground', crumbs: [{ text: 'playground', page: 'playground' }] },
    blocks: [
      text(`${runs.length} of the ${guides.length} examples of the guides run in the playground. The others need Node: files, processes or ranks.`),
      ...titles.flatMap((title, i) => {
        const mine = guides.filter((one) => one.title === title)
        return [
          heading(2, `guide-${i + 1}`, link({ page: pageOf(mine[0].file) }, title)),
          table(
            ['line', 'begins', 'in the playground'],
            mine.map((one) => [[String(one.line)], [code(firstLine(one.code))], [one.why === null ? toPlayground(one, 'runs') : one.why]]),
          ),
        ]
      }),
    ],
  }
}

/** The first line that is no import. */
const firstLine = (source) => (source.split('\n').find((line) => line.trim() !== '' && !line.startsWith('import ')) ?? '').slice(0, 80)
