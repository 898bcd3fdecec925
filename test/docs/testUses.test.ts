// Which names of its imports a test says: what declares a name anew hides it, wherever it stands, and names of members are no uses.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { loadCompiler } from '../../src/docs/compiler.ts'
import { readProject } from '../../src/docs/project.ts'
import { TestReader } from '../../src/docs/read/testUses.ts'
import { writeProject } from './fixture/project.ts'

/** The body of a test, and the names that it says. */
const BODIES: readonly (readonly [body: string, names: readonly string[]])[] = [
  ['f(1)', ['f']],
  ['ns.a.b(f)', ['f', 'ns.a.b']],
  ['ns.#p.a; ns.a.#p', ['ns', 'ns.a']],
  ['g().f; x.f.ns', []],
  ['({ f: 1, ns })', ['ns']],
  ['({ f: ns.a }); ({ [f]: 1 }); ({ f() {} })', ['f', 'ns.a']],
  ['((f) => f(ns))(1)', ['ns']],
  ['f(); { f(); const f = 1 }', ['f']],
  ['{ f(); { const f = 1 } }', ['f']],
  ['{ f(); { f(); { var f = 1 } ns.a } }', ['f', 'ns.a']],
  ['for (const f of ns) f()', ['ns']],
  ['f(); for (const f of ns.a) f()', ['f', 'ns.a']],
  ['f(); for (let f = 0; f < 1; f++) f', ['f']],
  ['for (let f = 0; f < 1; f++) ns.b', ['ns.b']],
  ['const [{ f }] = ns', ['ns']],
  ['function f() {} class ns {} f(ns)', []],
  ['const h: ns.T = f as typeof ns', ['f', 'ns']],
  ['f`x ${ns.a}`', ['f', 'ns.a']],
]

it('says which names', () => {
  const folder = temporaryFolder('tensorfx uses ')
  const bodies = BODIES.map(([body], i) => `  it('${i}', () => { ${body} })\n`).join('')
  writeProject(folder, {
    'package.json': '{ "name": "uses" }',
    'src/f.ts': 'export const f = 1\n',
    'test/a.test.ts': `import { f } from '../src/f.ts'\nimport * as ns from '../src/f.ts'\nf()\ndescribe('all', () => {\n${bodies}})\n`,
    'test/helper.ts': `// It tests: test.\nimport { f } from '../src/f.ts'\nexport const helper = f\n`,
    'test/other.test.ts': `import { it } from 'vitest'\nit('f', () => f())\n`,
    'test/each.test.ts': `import { f } from '../src/f.ts'\ntest /* a */ .each([1])('%i', () => f())\n`,
  })
  const ts = loadCompiler(import.meta.dirname)
  const reader = new TestReader(ts, readProject(ts, folder))
  const read = (name: string): ReturnType<TestReader['read']> => reader.read(join('test', name))
  const { tests, deps } = read('a.test.ts')
  expect(deps).toEqual(['src/f.ts'])
  expect(tests.map(({ title, line, names }) => [title, line, [...names].toSorted()])).toEqual(
    BODIES.map(([, names], i) => [`all > ${i}`, i + 5, [...names].toSorted()]),
  )
  expect(read('helper.ts').tests).toEqual([])
  expect(read('other.test.ts').tests.flatMap(({ names }) => [...names])).toEqual([])
  expect(read('each.test.ts').tests.map(({ title, names }) => [title, [...names]])).toEqual([['%i', ['f']]])
})
