// Repros of graphs that take sizes: what a script says of them, and that it runs for other sizes.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, markDynamic, registerBackend } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, setFileStore } from 'tensorfx/debug'
import { listen, pathOf, resetConfig, runHere, textOf, thrownBy } from './inProcess.ts'
import { distUrl, folderWith, launcherIn, readRepro, runScript } from './processes.ts'

const rows = (x: Tensor): number => x.shape[0] ?? 0
const program = (x: Tensor): Tensor =>
  torch
    .cat([x, x])
    .view([rows(x), -1])
    .relu()
    .sum(1)

/** A backend that is wrong for an odd number of rows, in any graph with a relu: as a module, and here. */
const moduleText = (compileUrl: string): string => `
import { registerBackend } from '${compileUrl}'
const isOdd = (value) => typeof value === 'object' && value.shape[0] % 2 === 1 && value.shape[0] > 1
registerBackend('odd_rows', (gm) => {
  const isWrong = [...gm.graph.nodes].some((node) => node.name.startsWith('relu'))
  return (...values) => {
    const outputs = gm.forward(...values)
    return isWrong && values.some(isOdd) ? outputs.map((output) => output.add(1)) : outputs
  }
}, { module: import.meta.url })
`
registerBackend('odd_rows_here', (gm) => {
  const isWrong = [...gm.graph.nodes].some((node) => node.name.startsWith('relu'))
  return (...values: readonly unknown[]) => {
    const outputs = gm.forward(...values) as Tensor[]
    return isWrong && values.some((value) => value instanceof torch.Tensor && rows(value) % 2 === 1)
      ? outputs.map((output) => output.add(1))
      : outputs
  }
})

describe('a script', () => {
  const store = new MemoryFileStore()
  const before = fileStore()
  beforeEach(() => {
    store.files.clear()
    setFileStore(store)
    listen()
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 4 })
  })
  afterEach(() => {
    setFileStore(before)
    resetConfig()
  })
  const launcher = (): string => pathOf(store, 'minifier_launcher.mjs')

  it('names the sizes of its inputs and what must hold of them', () => {
    const f = compile(program, { backend: 'odd_rows_here', dynamic: true })
    f(torch.ones([4, 6]))
    expect(thrownBy(() => f(torch.ones([3, 2]))).message).toContain('Bad accuracy')
    const text = textOf(store, launcher())
    expect(text).toContain('// Sizes: s0 = 3, s1 = 2, s2 = 3, with Eq(Mod(2*s0*s1, s2), 0), ')
    expect(text).toContain('reader.tensor(buf0, [4, 6], { dynamic: [0, 1] }) // l_x_: f32[s0, s1]\n  reader.symint(4) // size1: Sym(s2)\n')
  })

  it('keeps the ranges that the program has marked', async () => {
    const f = compile((x: Tensor) => x.sin().relu(), { backend: 'odd_rows_here' })
    const x = torch.ones([5, 6])
    markDynamic(x, 0, { min: 3, max: 9 })
    markDynamic(x, 1)
    thrownBy(() => f(x))
    expect(textOf(store, launcher())).toContain('{ dynamic: [{ dim: 0, min: 3, max: 9 }, 1] }')
    const run = async (size: string): Promise<unknown> =>
      (await runHere(store, launcher(), ['get_args', '--tracing-mode', 'symbolic', '--size', size])).error?.message ?? 'runs'
    expect(await run('s0=9')).toBe('runs')
    expect(await run('s0=10')).toContain("since 's0 in VR[3, 9]' does not hold")
  })

  it('runs with symbolic sizes, and for other ones', async () => {
    const f = compile(program, { backend: 'odd_rows_here', dynamic: true })
    thrownBy(() => f(torch.ones([3, 2])))
    const run = async (...words: readonly string[]): Promise<[number | undefined, string]> => {
      const { exitCode, output } = await runHere(store, launcher(), ['run', '--backend', 'odd_rows_here', ...words])
      return [exitCode, output]
    }
    const fails = 'with odd_rows_here: AccuracyError: Bad accuracy detected; with eager: passes'
    expect(await run()).toEqual([1, fails])
    const [, sizes = ''] = /\/\/ (Sizes: .*)/.exec(textOf(store, launcher())) ?? []
    expect(await run('--tracing-mode', 'symbolic')).toEqual([1, `${sizes}\n${fails}`])
    expect(await run('--size', 's0=5', '--size', 's2=5')).toEqual([1, `${sizes}\n${fails}`])
    expect(await run('--size', 's0=4', '--size', 's2=4')).toEqual([
      undefined,
      expect.stringContaining('with odd_rows_here: passes; with eager: passes'),
    ])
    const refused = await runHere(store, launcher(), ['run', '--backend', 'odd_rows_here', '--size', 's2=5'])
    expect(refused.error?.message).toContain("--size: the graph is not for these sizes, since 'Eq(Mod(2*s0*s1, s2), 0)' does not hold.")
    const unknown = await runHere(store, launcher(), ['run', '--backend', 'odd_rows_here', '--size', 's9=5'])
    expect(unknown.error?.message).toContain('--size s9=5: the graph has no size s9; it has s0, s1, s2.')
  })

  it('of a graph for one shape names no sizes, and takes all as symbols where it is asked to', async () => {
    const f = compile((x: Tensor, y: Tensor) => x.t().relu().add(y), { backend: 'odd_rows_here' })
    thrownBy(() => f(torch.arange(6).view([3, 2]), torch.ones([3])))
    expect(textOf(store, launcher())).not.toMatch(/Sizes:|symint|dynamic:/)
    const { error, output } = await runHere(store, launcher(), ['get_args', '--size', 's0=4'])
    expect([error, output]).toEqual([null, 'Sizes: s0 = 3, s1 = 2.\nl_x_: a Tensor of shape [4, 2]\nl_y_: a Tensor of shape [4]'])
  })
})

it(
  'a fault in a graph with sizes is minified to a script that fails in a process of its own, with symbolic sizes',
  { timeout: 240_000 },
  async () => {
    const folder = folderWith({
      'backend.mjs': moduleText(distUrl('entries/compile.js')),
      'program.mjs': [
        `import { compile, torch } from '${distUrl('index.js')}'`,
        `import { config } from '${distUrl('entries/compile.js')}'`,
        "import './backend.mjs'",
        'Object.assign(config, { reproAfter: "dynamo", reproLevel: 4, debugDirRoot: "debug" })',
        'const f = compile((x) => torch.cat([x.sin(), x]).view([x.shape[0], -1]).relu().cos().sum(1), { backend: "odd_rows", dynamic: true })',
        'for (const n of [4, 6, 3]) f(torch.ones([n, 2]))',
      ].join('\n'),
    })
    const program = await runScript(folder, 'program.mjs')
    expect(program.how).toBe('exit 1')
    const launcher = launcherIn(folder) ?? ''
    expect(readFileSync(launcher, 'utf8')).toContain('// Sizes: s0 = 3')
    const minified = await runScript(folder, launcher, ['minify', '--tracing-mode', 'symbolic'])
    expect(minified.output).toContain('Wrote minimal repro')
    const repro = join(folder, 'repro.mjs')
    expect(readRepro(repro).operators).toEqual(['relu'])
    const text = readFileSync(repro, 'utf8')
    expect(text).toMatch(/\/\/ Sizes: s0 = 3\.\n[^]*reader\.tensor\(buf0, \[3\b.*\{ dynamic: \[0\] \}\) \/\/ view: f32\[s0/)
    for (const [words, how] of [
      [[], 'exit 1'],
      [['--tracing-mode', 'symbolic'], 'exit 1'],
      [['--size', 's0=7'], 'exit 1'],
      [['--size', 's0=8'], 'exit 0'],
    ] as const)
      expect([words, (await runScript(folder, repro, words)).how]).toEqual([words, how])
  },
)
