// The walks through calls: a page for each that `tensorfx flow` has kept in docs/flows, drawn anew from the sources as they are.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { flowPage } from '../../dist/docs/flow/flowPage.js'
import { proseIn } from '../../dist/docs/flow/index.js'
import { walk } from '../../dist/docs/flow/walk.js'
import { code, link, list, text } from '../../dist/docs/pages/page.js'

const END = '.flow.json'

export function flowPages(root, model, sources) {
  const folder = `${root}docs/flows/`
  const names = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(END))
        .map((name) => name.slice(0, -END.length))
        .sort()
    : []
  const pages = names.map((name) => {
    const { root: from, observed, options, command } = JSON.parse(readFileSync(`${folder}${name}${END}`, 'utf8'))
    const written = existsSync(`${folder}${name}.prose.md`) ? proseIn(readFileSync(`${folder}${name}.prose.md`, 'utf8')) : new Map()
    const prose = new Map([...written].map(([id, { text: words }]) => [id, words]))
    const page = flowPage(`flows/${name}`, walk(model, from, observed, options), { model, sources, sourceUrl: null, prose, command })
    return { ...page, crumbs: [{ text: 'flows', page: 'flows/index' }] }
  })
  const index = {
    ...{ path: 'flows/index', title: 'Flows', crumbs: [] },
    blocks: [
      text(
        'What happens in a call, function by function. ',
        code('tensorfx flow'),
        ' draws such pages for any project: ',
        link({ page: 'guide/documentation', anchor: 'walks-through-calls' }, 'walks through calls'),
        '.',
      ),
      ...(pages.length === 0 ? [] : [list(pages.map(({ path, title }) => [link({ page: path }, title)]))]),
      text(
        'The files that the first calls pass through, as recorded: ',
        link({ page: 'contributing', anchor: 'what-a-call-passes-through' }, 'what a call passes through'),
        '.',
      ),
    ],
  }
  return [index, ...pages]
}
