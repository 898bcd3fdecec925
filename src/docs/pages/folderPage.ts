// The page of a folder: its header, its folders and modules, what it uses and what uses it.
import { baseOf, byText, folderOf } from '../model.ts'
import type { Module } from '../model.ts'
import type { Lookup } from './lookup.ts'
import { firstSentence, parseInline, parseMarkdown } from './markdownText.ts'
import { crumbsOf, purposeOf } from './modulePage.ts'
import { code, heading, joined, link, soft, table, text } from './page.ts'
import type { Block, Inline, Page } from './page.ts'

const isIn = (path: string, folder: string): boolean => folder === '' || path.startsWith(`${folder}/`)

/** The part of the way to a path that is one step from a folder: its folder there, or itself. */
const stepTo = (path: string, folder: string): string => {
  const rest = folder === '' ? path : path.slice(folder.length + 1)
  return rest.includes('/') ? `${folder === '' ? '' : `${folder}/`}${rest.slice(0, rest.indexOf('/'))}` : path
}

/** Where other folders begin to differ from this one: `src/fx` for `src/fx/graph/node.ts` seen from `src/ops`. */
function placeSeenFrom(path: string, folder: string): string {
  let above = folderOf(folder)
  while (above !== '' && !isIn(path, above)) above = folderOf(above)
  return stepTo(path, above)
}

/** The strongly connected groups of modules that import each other. Type imports are left out. */
export function cyclesOf(modules: readonly Module[]): readonly (readonly string[])[] {
  const known = new Map(modules.map((module) => [module.path, module]))
  const [index, low] = [new Map<string, number>(), new Map<string, number>()]
  const stack: string[] = []
  const found: string[][] = []
  const onStack = new Set<string>()
  /** Tarjan's search, with a stack of its own. */
  for (const { path: root } of modules) {
    if (index.has(root)) continue
    const work: { readonly path: string; readonly next: Iterator<string> }[] = []
    const enter = (path: string): void => {
      index.set(path, index.size)
      low.set(path, index.get(path) ?? 0)
      stack.push(path)
      onStack.add(path)
      const targets = (known.get(path)?.imports ?? []).filter(({ from, isType }) => !isType && known.has(from)).map(({ from }) => from)
      work.push({ path, next: targets[Symbol.iterator]() })
    }
    enter(root)
    for (let frame = work.at(-1); frame !== undefined; frame = work.at(-1)) {
      const { value, done } = frame.next.next()
      if (done !== true) {
        if (!index.has(value)) enter(value)
        else if (onStack.has(value)) low.set(frame.path, Math.min(low.get(frame.path) ?? 0, index.get(value) ?? 0))
        continue
      }
      work.pop()
      const above = work.at(-1)
      if (above !== undefined) low.set(above.path, Math.min(low.get(above.path) ?? 0, low.get(frame.path) ?? 0))
      if (low.get(frame.path) !== index.get(frame.path)) continue
      const group = stack.splice(stack.indexOf(frame.path))
      for (const path of group) onStack.delete(path)
      if (group.length > 1) found.push(group.toSorted(byText))
    }
  }
  return found.toSorted((a, b) => byText(a[0] ?? '', b[0] ?? ''))
}

/** The page of a folder. */
export function folderPage(lookup: Lookup, folder: string): Page {
  const modules = lookup.model.modules.filter(({ path }) => isIn(path, folder))
  const own = modules.filter(({ path }) => folderOf(path) === folder)
  const folders = [...new Set(modules.filter(({ path }) => folderOf(path) !== folder).map(({ path }) => stepTo(path, folder)))].toSorted(byText)
  const index = own.find(({ path }) => /^index\.[cm]?[jt]sx?$/.test(baseOf(path)))
  const purpose = index === undefined ? null : index.header
  const blocks: Block[] = [
    text(`${modules.length} modules, ${modules.reduce((sum, { lines }) => sum + lines, 0)} lines`),
    ...(purpose === null || index === undefined ? [] : parseMarkdown(purpose, (name) => lookup.resolve(index.path, name))),
  ]
  const summary = (module: Module): readonly Inline[] =>
    parseInline(firstSentence(purposeOf(lookup, module) ?? ''), (name) => lookup.resolve(module.path, name))
  if (folders.length > 0)
    blocks.push(
      heading(2, '.folders', 'Folders'),
      table(
        ['folder', 'modules', 'what it is'],
        folders.map((path) => {
          const inside = modules.filter((module) => isIn(module.path, path))
          const head = inside.find((module) => folderOf(module.path) === path && baseOf(module.path).startsWith('index.'))
          return [
            [link({ page: lookup.folderPage(path) }, code(`${baseOf(path)}/`))],
            [String(inside.length)],
            head === undefined ? [] : summary(head),
          ]
        }),
      ),
    )
  if (own.length > 0)
    blocks.push(
      heading(2, '.modules', 'Modules'),
      table(
        ['module', 'lines', 'what it is'],
        own.map((module) => [[link({ page: lookup.pageOf(module.path) }, code(baseOf(module.path)))], [String(module.lines)], summary(module)]),
      ),
    )
  blocks.push(...(folder === '' ? [] : dependencyBlocks(lookup, folder, modules)))
  const cycles = cyclesOf(modules)
  if (cycles.length > 0)
    blocks.push(
      heading(2, '.cycles', 'Cycles'),
      ...cycles.map((paths) =>
        text(
          `${paths.length} modules import each other: `,
          ...joined(
            paths.map((path) => [link({ page: lookup.pageOf(path) }, code(path))]),
            ', ',
          ),
        ),
      ),
    )
  return {
    path: lookup.folderPage(folder),
    title: folder === '' ? 'Modules' : `${folder}/`,
    crumbs: folder === '' ? [] : crumbsOf(lookup, folder),
    blocks,
  }
}

function dependencyBlocks(lookup: Lookup, folder: string, modules: readonly Module[]): readonly Block[] {
  const count = (paths: readonly string[]): readonly (readonly [place: string, count: number])[] => {
    const counts = new Map<string, number>()
    for (const path of paths)
      if (!isIn(path, folder) && lookup.modules.has(path)) counts.set(placeSeenFrom(path, folder), (counts.get(placeSeenFrom(path, folder)) ?? 0) + 1)
    return [...counts].toSorted((a, b) => b[1] - a[1] || byText(a[0], b[0]))
  }
  const row = (id: string, title: string, of: readonly (readonly [string, number])[]): readonly Block[] => {
    const links = of.map(([place, n]): readonly Inline[] => [
      link({ page: lookup.modules.has(place) ? lookup.pageOf(place) : lookup.folderPage(place) }, code(place)),
      ' ',
      soft(`${n} times`),
    ])
    return of.length === 0 ? [] : [heading(2, id, title), text(...joined(links, ', '))]
  }
  return [
    ...row('.uses', 'Uses', count(modules.flatMap(({ imports }) => imports.map(({ from }) => from)))),
    ...row('.used-by', 'Used by', count(modules.flatMap(({ importers }) => importers.map(({ path }) => path)))),
  ]
}
