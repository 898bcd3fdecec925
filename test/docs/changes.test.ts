// What is read again of a program that has changed: as little as the change allows, and what comes out is what a reading of everything gives.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { loadCompiler } from '../../src/docs/compiler.ts'
import { modelText } from '../../src/docs/pages/site.ts'
import { readProject } from '../../src/docs/project.ts'
import { readChanges } from '../../src/docs/read/changes.ts'
import type { Kept } from '../../src/docs/read/changes.ts'
import { readFacts } from '../../src/docs/read/facts.ts'
import { modelOf, readModel } from '../../src/docs/read/index.ts'
import { writeProject } from './fixture/project.ts'

const folder = temporaryFolder('tensorfx changes ')

const FILES: Record<string, string> = {
  'package.json': JSON.stringify({ name: 'changing', type: 'module' }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      module: 'NodeNext',
      target: 'ES2022',
      lib: ['ES2022'],
      types: [],
      strict: true,
      allowImportingTsExtensions: true,
      noEmit: true,
    },
  }),
  'src/base.ts': `/** Written. */\nexport function written(n: number): number {\n  return n + 1\n}\nexport function inferred(n: number) {\n  return n\n}\n`,
  'src/middle.ts': `import { inferred, written } from './base.ts'\nexport const made = inferred(written(1))\nexport * from './base.ts'\n`,
  'src/index.ts': `export * from './middle.ts'\n`,
  'src/typed.ts': `export function typed(): typeof import('./base.ts').inferred {\n  throw new Error('never')\n}\n`,
  'src/types.ts': `export {}\ndeclare global {\n  interface Shared {\n    readonly size: number\n  }\n}\n`,
  'src/apart.ts': `declare const shared: Shared\nexport const apart = shared.size\n`,
  'src/old.js': `/** @returns {number} */\nexports.old = function () {\n  return 1\n}\n`,
  'test/base.test.ts': `import { it } from 'vitest'\nimport { made, written } from '../src/index.ts'\nit('counts', () => written(made))\nit('hides', () => ((written: number) => written)(1))\n`,
}
const SOURCES = Object.keys(FILES).filter((name) => name.startsWith('src/'))

/** Each change: what it replaces where, and the modules that it makes be read. */
const CHANGES: readonly (readonly [what: string, file: string, from: string, to: string, read: readonly string[]])[] = [
  ['nothing', 'src/base.ts', '', '', []],
  ['the body of a function whose type is written', 'src/base.ts', 'n + 1', 'n + inferred(1)', ['src/base.ts']],
  ['a comment', 'src/base.ts', 'Written.', 'Its type is written.', ['src/base.ts']],
  [
    'the body of a function whose type is inferred',
    'src/base.ts',
    '  return n\n',
    '  return `${n}`\n',
    ['src/base.ts', 'src/middle.ts', 'src/index.ts', 'src/typed.ts'],
  ],
  [
    'a new export, which others pass on',
    'src/base.ts',
    '/** Its',
    'export class More {}\n/** Its',
    ['src/base.ts', 'src/middle.ts', 'src/index.ts', 'src/typed.ts'],
  ],
  ['a module that few import', 'src/middle.ts', 'made', 'built', ['src/middle.ts', 'src/index.ts']],
  ['a type that is declared for all modules', 'src/types.ts', 'size: number', 'size: string', SOURCES],
  ['a body in JavaScript', 'src/old.js', 'return 1', 'return 2', ['src/old.js']],
  ['a test', 'test/base.test.ts', 'counts', 'counts again', []],
]

it('reads large programs in two threads, which find what one finds', async () => {
  const large = join(folder, 'large')
  const text = (i: number): string =>
    `import type { C${(i + 7) % 230} } from './m${(i + 7) % 230}.ts'\nexport class C${i} { next?: C${(i + 7) % 230}; run() { return ${i} } }\n`
  const modules = Array.from({ length: 230 }, (_, i) => [`src/m${i}.ts`, text(i)] as const)
  const test = `import { it } from 'vitest'\nimport { C3 } from '../src/m3.ts'\nit('runs', () => new C3().run())\n`
  writeProject(large, { ...FILES, ...Object.fromEntries(modules), 'test/m3.test.ts': test })
  const { readShared }: typeof import('../../src/docs/read/shared.ts') = await import(new URL('../../dist/docs/read/shared.js', import.meta.url).href)
  const ts = loadCompiler(large)
  const project = readProject(ts, large)
  const shared = await readShared(ts, project, project)
  const alone = readFacts(ts, project, project)
  expect(shared.outside).toEqual(alone.outside)
  expect(modelText(modelOf(ts, project, shared).model)).toBe(modelText(modelOf(ts, project, alone).model))
  expect(shared.tests['test/m3.test.ts']?.uses).toContainEqual({ id: 'src/m3.ts#C3', line: 3, title: 'runs' })
})

it('reads what a change can be seen from, and gets what a reading of everything gives', async () => {
  writeProject(folder, FILES)
  const ts = loadCompiler(folder)
  const project = readProject(ts, folder)
  let kept: Kept = (await readChanges(ts, project, null)).kept
  const texts = { ...FILES }
  const models = [modelText(modelOf(ts, project, kept).model)]
  for (const [what, file, from, to, expected] of CHANGES) {
    const before = texts[file] ?? ''
    texts[file] = before.replace(from, to)
    writeProject(folder, { [file]: texts[file] })
    // oxlint-disable-next-line no-await-in-loop -- each change follows the one before
    const changes = await readChanges(ts, project, kept)
    // As it is read from a disk.
    kept = JSON.parse(JSON.stringify(changes.kept))
    expect(changes.read, what).toEqual(expected.toSorted())
    const text = modelText(modelOf(ts, project, kept).model)
    expect(text, what).toBe(modelText(readModel(ts, project).model))
    expect(texts[file] === before, what).toBe(text === models.at(-1))
    models.push(text)
  }
  expect(models[0]).toContain('"const made: number"')
  expect(models.at(-1)).toContain('"const built: string"')
  expect(models.at(-1)).toContain('"const apart: string"')
  expect(models.at(-1)).toContain('counts again')
  expect(models.at(-1)).not.toContain('"title":"hides"')

  writeProject(folder, { 'src/new.ts': 'export const one = 1\n' })
  const more = readProject(ts, folder)
  expect((await readChanges(ts, more, kept)).read).toHaveLength(SOURCES.length + 1)
})
