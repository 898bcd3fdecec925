// What has to be read again. A module is, where its text has changed or what it can see of the modules that it imports, however far away; the body of a function that says what it
// returns is seen by no other module. Where that cannot be said, all modules are read again: if files came or went, or packages, the compiler or tensorfx changed.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { VERSION } from '../../version.ts'
import type { Compiler } from '../compiler.ts'
import { byText } from '../model.ts'
import type { Project } from '../project.ts'
import type { Facts, FactsWanted } from './facts.ts'
import { isAmbient, shapeOf } from './shape.ts'
import { readShared } from './shared.ts'
import { Tokens, hashOf, normalized } from './tokens.ts'

/** What was read of a project, with what it depends on beside its texts. */
export interface Kept {
  readonly key: string
  readonly sources: Facts['sources']
  readonly tests: Facts['tests']
  /** The files outside of the sources that the compiler read, from the root, with their state. */
  readonly outside: readonly (readonly [file: string, state: string])[]
}

/** What {@link readChanges} has read. */
export interface Changes {
  readonly kept: Kept
  /** The modules that were read, and not taken from before. */
  readonly read: readonly string[]
}

/** Reads a project, or what has changed of it since it was read before. */
export async function readChanges(ts: Compiler, project: Project, before: Kept | null): Promise<Changes> {
  const key = keyOf(ts, project)
  const isUsable = before?.key === key && before.outside.every(([file, state]) => stateOf(join(project.root, file)) === state)
  const wanted = isUsable ? staleOf(ts, project, before) : project
  const isNothing = wanted.sources.length === 0 && wanted.tests.length === 0
  const facts = isNothing && before !== null ? null : await readShared(ts, project, wanted)
  const kept = {
    key,
    sources: { ...(isUsable ? before.sources : {}), ...facts?.sources },
    tests: { ...(isUsable ? before.tests : {}), ...facts?.tests },
    outside: facts === null ? (before?.outside ?? []) : facts.outside.map((file) => [relative(project.root, file), stateOf(file)] as const),
  }
  return { kept, read: wanted.sources }
}

/** The state of a file, by which a change is noticed without reading it. */
function stateOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  return found === undefined ? '' : `${found.size} ${found.mtimeMs}`
}

/** A key for what all modules depend on. The code that reads is a part of it, so that those who write it need not remove what was kept. */
function keyOf(ts: Compiler, { root, sources, tests, options }: Project): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const code = readdirSync(here).toSorted(byText)
  const installed = join(root, 'node_modules/.package-lock.json')
  return hashOf(
    [
      ...[VERSION, ts.version, JSON.stringify(options).replaceAll(root, '')],
      ...[sources.toSorted(byText).join('\n'), tests.toSorted(byText).join('\n')],
      ...code.map((name) => readFileSync(join(here, name), 'utf8')),
      existsSync(installed) ? readFileSync(installed, 'utf8') : '',
    ].join('\0'),
  )
}

const hashIn = (root: string, path: string): string => hashOf(normalized(readFileSync(join(root, path), 'utf8')))

/** What is to be read again, of a project with the same files as before. */
function staleOf(ts: Compiler, { root, sources, tests }: Project, before: Kept): FactsWanted {
  const changed = new Set(sources.filter((path) => hashIn(root, path) !== before.sources[path]?.module.hash))
  const seen = [...changed].filter((path) => shapeIn(ts, root, path) !== before.sources[path]?.shape)
  if (seen.some((path) => isAmbient(readFileSync(join(root, path), 'utf8')) || before.sources[path]?.isAmbient === true)) return { sources, tests }
  const reached = importersOf(seen, before.sources)
  return {
    sources: sources.filter((path) => changed.has(path) || reached.has(path)),
    tests: tests.filter((path) => {
      const test = before.tests[path]
      return test === undefined || test.hash !== hashIn(root, path) || test.deps.some((dep) => reached.has(dep))
    }),
  }
}

function shapeIn(ts: Compiler, root: string, path: string): string {
  const file = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.ESNext, true)
  return shapeOf(ts, file, new Tokens(ts, file))
}

/** Some modules and all that import them, however far away. */
function importersOf(paths: readonly string[], sources: Facts['sources']): ReadonlySet<string> {
  const importers = new Map<string, string[]>()
  for (const { module } of Object.values(sources))
    for (const { from } of module.imports) {
      const known = importers.get(from)
      if (known === undefined) importers.set(from, [module.path])
      else known.push(module.path)
    }
  const found = new Set(paths)
  for (const path of found) for (const importer of importers.get(path) ?? []) found.add(importer)
  return found
}
