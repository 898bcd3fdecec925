// tensorfx doctor: the machine, the list of environment variables, and what is wrong in an environment.
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runTensorfx } from '../../src/cli/commands.ts'
import { examine } from '../../src/cli/doctor/command.ts'
import { configVariables } from '../../src/config.ts'
import { VARIABLES } from '../../src/protocol/variables.ts'
import { root } from '../built/node.ts'

const NONE = { operands: [], options: new Map<string, string>() }
const plain = { print: () => {}, note: () => {} }

interface Report {
  readonly machine: readonly { readonly name: string; readonly value: string; readonly problem: string | null }[]
  readonly variables: readonly { readonly name: string; readonly value: string | null; readonly problem: string | null }[]
  readonly unknown: readonly { readonly name: string; readonly didYouMean: string | null }[]
  readonly problems: readonly string[]
}

/** What the command reports in an environment, as JSON has it. */
async function report(env: Readonly<Record<string, string>>): Promise<Report & { readonly code: number; readonly text: string }> {
  const { text, code, data } = await examine(NONE, undefined, env)
  return { ...(JSON.parse(JSON.stringify(data)) as Report), code, text }
}

describe('the list of variables', () => {
  it('has each one that the sources read, and no other', () => {
    const src = join(root, 'src')
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && file !== join('protocol', 'variables.ts'),
    )
    const text = files.map((file) => readFileSync(join(src, file), 'utf8')).join('\n')
    const named = new Set([...configVariables().keys(), ...(text.match(/TENSORFX_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [])])
    // `TENSORFX_FX_GRAPH_${name}`, a prefix that is left out of repros, and the switch of the tests of the heap.
    for (const part of ['TENSORFX_FX_GRAPH', 'TENSORFX_REPRO', 'TENSORFX_CHECK_HEAP']) named.delete(part)
    expect(Object.keys(VARIABLES).toSorted()).toEqual(
      [...named, 'TENSORFX_FX_GRAPH_SHOW_DEVICE', 'TENSORFX_FX_GRAPH_SHOW_STRIDE'].filter((name, i, all) => all.indexOf(name) === i).toSorted(),
    )
  })
})

describe('tensorfx doctor', () => {
  it('finds no problem here, and names what there is', async () => {
    const { code, machine, problems, variables, text } = await report({ PATH: '/bin', TENSORFX_LOGS: 'graph_breaks', TENSORFX_REPRO_LEVEL: '4' })
    expect([code, problems]).toEqual([0, []])
    expect(machine.map(({ name }) => name)).toEqual([
      'Node',
      'engine',
      'SIMD',
      'relaxed SIMD',
      'threads',
      'compiler',
      'generated code',
      'MPI',
      'WebGPU',
      'memory limit',
      'caches',
    ])
    const values = new Map(machine.map(({ name, value }) => [name, value]))
    expect(values.get('Node')).toContain(process.versions.node)
    expect(values.get('SIMD')).toBe('yes')
    expect(values.get('compiler')).toBe('works')
    expect(variables.filter(({ value }) => value !== null).map(({ name, value }) => [name, value])).toEqual([
      ['TENSORFX_LOGS', 'graph_breaks'],
      ['TENSORFX_REPRO_LEVEL', '4'],
    ])
    for (const [name, { text: meaning }] of Object.entries(VARIABLES))
      expect(text).toMatch(new RegExp(`^ {2}${name} .*${meaning.slice(0, 12).replaceAll(/[.()]/g, '.')}`, 'm'))
    expect(text.split('\n').at(-1)).toBe('No problems found.')
  })

  it.each([
    ['TENSORFX_REPRO_LEVEL', '9', /TENSORFX_REPRO_LEVEL=9: config\.reproLevel must be 1, 2, 3 or 4, got 9/],
    ['TENSORFX_REPRO_AFTER', 'dinamo', /TENSORFX_REPRO_AFTER=dinamo: .* must be 'dynamo', 'aot' or null/],
    ['TENSORFX_RECOMPILE_LIMIT', 'many', /TENSORFX_RECOMPILE_LIMIT=many: .* at least 0, got NaN/],
    ['TENSORFX_SUPPRESS_ERRORS', 'yes', /TENSORFX_SUPPRESS_ERRORS=yes: .* true or false, got 'yes'/],
    ['TENSORFX_MEMORY_LIMIT', '2GB', /TENSORFX_MEMORY_LIMIT=2GB: .* number of bytes/],
    ['TENSORFX_LOGS', 'graph_braks', /TENSORFX_LOGS=graph_braks.*graph_breaks/s],
    ['TENSORFX_DISTRIBUTED_DEBUG', 'verbose', /TENSORFX_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, got 'verbose'/],
    ['TENSORFX_VERIFY', 'true', /TENSORFX_VERIFY must be 1 \(on\) or 0 \(off\), got 'true', which counts as off/],
    ['TENSORFX_FX_GRAPH_SHOW_STRIDE', 'on', /TENSORFX_FX_GRAPH_SHOW_STRIDE must be 1/],
    ['TENSORFX_MPI_NODES', '0', /TENSORFX_MPI_NODES must be a whole number of at least 1, got '0'/],
    ['TENSORFX_MPIRUN', '/absent/mpirun', /TENSORFX_MPIRUN=\/absent\/mpirun: this command cannot be run/],
  ])('%s=%s is a wrong value', async (name, value, message) => {
    const { code, problems, text } = await report({ [name]: value })
    expect([code, problems.length]).toEqual([1, 1])
    expect(problems[0]).toMatch(message)
    expect(text).toContain('\n1 problem\n  - ')
  })

  it('names unknown variables with the nearest one, and no variables of other programs', async () => {
    const { code, unknown, problems } = await report({ TENSORFX_REPRO_LEVL: '1', TENSORFX_XYZZY: '', HOME: '/', XTENSORFX_LOGS: '1' })
    expect(code).toBe(1)
    expect(unknown).toMatchObject([
      { name: 'TENSORFX_REPRO_LEVL', didYouMean: 'TENSORFX_REPRO_LEVEL' },
      { name: 'TENSORFX_XYZZY', didYouMean: null },
    ])
    expect(problems).toEqual([
      'tensorfx has no variable TENSORFX_REPRO_LEVL. Did you mean TENSORFX_REPRO_LEVEL?',
      'tensorfx has no variable TENSORFX_XYZZY.',
    ])
  })

  it('shows the memory limit that the environment sets', async () => {
    const { machine } = await report({ TENSORFX_MEMORY_LIMIT: '536870912' })
    expect(machine.find(({ name }) => name === 'memory limit')?.value).toMatch(/^512\.0 MiB \(TENSORFX_MEMORY_LIMIT\)/)
  })

  it('leaves the environment as it was', async () => {
    const before = { ...process.env }
    await report({})
    expect({ ...process.env }).toEqual(before)
  })

  it('has help, refuses other words, and fits the terminal', async () => {
    expect((await runTensorfx(['doctor', '--help'], plain)).text).toMatch(/^usage: tensorfx doctor\n {2}--json /)
    const { text, code } = await runTensorfx(['doctor', 'me'], plain)
    expect([code, text.split('\n')[0]]).toEqual([2, 'tensorfx doctor: doctor takes no names, got me.'])
    const narrow = await examine(NONE, { columns: 80, isColored: true }, { TENSORFX_REPRO_LEVEL: '9' })
    expect(narrow.text).toContain('\u001B[31m1 problem\u001B[39m')
    expect(Math.max(...narrow.text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('also runs where a wrong value stops every other program', () => {
    const env = { PATH: process.env['PATH'], TENSORFX_REPRO_LEVEL: '9', TENSORFX_LOGS: 'nonsense' }
    const { stdout, status } = spawnSync(process.execPath, [join(root, 'dist/cli/main.js'), 'doctor', '--json'], { encoding: 'utf8', env })
    expect(status).toBe(1)
    expect((JSON.parse(stdout) as Report).problems).toEqual([
      expect.stringContaining('TENSORFX_LOGS=nonsense') as string,
      expect.stringContaining('TENSORFX_REPRO_LEVEL=9') as string,
    ])
  })
})
