// tensorfx explain and tensorfx profile: scripts that run in the command's process.
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { half, turn } from '../helpers/rotation.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { optionsOf } from '../../src/cli/line.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'
import { distUrl, folderWith } from '../debug/processes.ts'

const folder = folderWith({
  'breaks.mjs': `import { compile, torch } from '${distUrl('index.js')}'
    export function step(x) {
      const y = torch.relu(x)
      if (y.sum().item() > 0) return y.mul(2)
      return y.add(1)
    }
    const f = compile(step)
    f(torch.ones([3]))
    f(torch.ones([3]))
    f(torch.ones([5]))
    console.log('words', process.argv.slice(2).join(' '))
  `,
  'main.mjs': `import { compile, nn, torch } from '${distUrl('index.js')}'
    import { symbolicTrace } from '${distUrl('entries/fx.js')}'
    export default async function main(word) {
      const net = new nn.Sequential(new nn.Linear(8, 4), new nn.ReLU())
      await new Promise((done) => setTimeout(done, 5))
      net(torch.ones([2, 8])).sum().backward()
      symbolicTrace(net)(torch.ones([2, 8]))
      const f = compile((x) => torch.tanh(x).add(1))
      f(torch.ones([4]))
      console.log('got', word)
      if (word === 'exit') process.exit(3)
      if (word === 'fail') throw new RangeError('mine')
    }
  `,
  'empty.mjs': '',
  'noise.mjs': 'const = 3',
})
afterAll(() => removeFolder(folder))

function tensorfx(...words: string[]): { readonly code: number | null; readonly out: string; readonly err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bundledCommand, ...words], { cwd: folder, encoding: 'utf8' })
  return { code: status, out: stdout, err: stderr }
}

interface Explained {
  readonly functions: readonly {
    readonly name: string
    readonly calls: number
    readonly graphs: readonly (readonly string[])[]
    readonly breaks: readonly { readonly reason: string; readonly place: string }[]
    readonly recompiles: readonly { readonly place: string; readonly expected: string; readonly actual: string }[]
  }[]
}

/** As {@link tensorfx}, beside others. */
const started = (...words: string[]): Promise<{ readonly code: unknown; readonly out: string; readonly err: string }> =>
  new Promise((done) =>
    execFile(process.execPath, [bundledCommand, ...words], { cwd: folder }, (error, out, err) => done({ code: error?.code ?? 0, out, err })),
  )

describe('a broken script', () => {
  const runners = COMMANDS.filter(({ passesOn }) => passesOn === 'afterOperand')
  const words = (name: string): readonly string[] => (name === 'run' ? ['run', '-n', '1', '--backend', 'threads'] : [name])

  it('fails with exit code 1 and the place of the error, whichever command runs it, and as JSON', async () => {
    writeFileSync(join(folder, 'bytes.mjs'), Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0xff, 0xfe))
    expect(runners.map(({ name }) => name)).toEqual(['run', 'explain', 'profile'])
    const tries = runners.flatMap((command) =>
      ['noise.mjs', 'bytes.mjs'].flatMap((file) =>
        (optionsOf(command).some(({ name }) => name === '--json') ? [[], ['--json']] : [[]]).map((json) => ({ command, file, json })),
      ),
    )
    await Promise.all(
      half(tries).map(async ({ command: { name }, file, json }) => {
        const { code, out, err } = await started(...words(name), ...json, file)
        expect([name, file, json, code]).toEqual([name, file, json, 1])
        const { error = '' }: Profiled = json.length === 0 ? {} : JSON.parse(out)
        const said = json.length === 0 ? out + err : error
        expect(said).toContain('SyntaxError')
        expect(said).toMatch(new RegExp(`^.*${file}:1$`, 'm'))
      }),
    )
  })
})

describe('tensorfx explain', () => {
  it('prints graphs, breaks with the line of the script, and recompiles, after what the script prints', () => {
    const { code, out } = tensorfx('explain', 'breaks.mjs', '--mine', 'x')
    expect([code, out.split('\n').slice(0, 3)]).toEqual([0, ['words --mine x', 'step', 'Calls: 3 (3 recorded)']])
    expect(out).toMatch(/^Graph Break Count: [12]$/m)
    expect(out).toMatch(/^ {6}File ".*breaks\.mjs", line 4, in step\n {8}if \(y\.sum\(\)\.item\(\) > 0\) return y\.mul\(2\)$/m)
    expect(out).toMatch(/^Recompiles: 1\n {2}.*\n {4}expected .*\[3\].*, got .*\[5\].*$/m)
    expect(out).toMatch(/^1 compiled function, \d graphs, \d graph breaks?, 1 recompile$/m)
  })

  it('prints JSON alone with --json', () => {
    const { code, out, err } = tensorfx('explain', '--json', 'breaks.mjs')
    const { functions }: Explained = JSON.parse(out)
    expect([code, err]).toEqual([0, 'words \n'])
    expect(functions.map(({ name, calls }) => [name, calls])).toEqual([['step', 3]])
    expect(functions[0]?.breaks[0]?.place).toMatch(/breaks\.mjs:4$/)
    expect(functions[0]?.graphs[0]?.[0]).toMatch(/relu/)
    expect(functions[0]?.recompiles).toHaveLength(1)
  })

  it('says so of a script that compiles nothing, and of one that cannot be read', () => {
    const { code, out } = tensorfx('explain', 'empty.mjs')
    expect([code, out]).toEqual([0, 'The script called no compiled function of this installation of tensorfx.\n'])
    const broken = tensorfx('explain', 'noise.mjs')
    expect([broken.code, broken.out]).toEqual([1, expect.stringMatching(/^The script called .*\nThe script failed: .*noise\.mjs:1\n[^]*SyntaxError/)])
  })
})

interface Profiled {
  readonly rows: readonly { readonly name: string; readonly calls: number; readonly flops: number }[]
  readonly graphs: readonly { readonly graph: string; readonly nodes: Readonly<Record<string, { readonly flops: number }>> }[]
  readonly error?: string
}

describe('tensorfx profile', () => {
  it('prints a table of what ran, and writes a trace and a flame graph', () => {
    const { code, out } = tensorfx('profile', '--sort', 'flops', '--limit', '3', '--chrome', 'trace.json', '--flame', 'flame.html', 'main.mjs', 'on')
    const lines = out.trimEnd().split('\n')
    expect([code, lines[0], lines.at(-2), lines.at(-1)]).toEqual([0, 'got on', 'Wrote trace.json', 'Wrote flame.html'])
    expect(lines[1]).toMatch(/^Name +Self CPU % +Self CPU/)
    expect(lines[3]).toMatch(/^torch\.nn\.functional\.linear +.* 2 +256 /)
    expect(lines).toHaveLength(1 + 2 + 3 + 1 + 2)
    expect(JSON.parse(readFileSync(join(folder, 'trace.json'), 'utf8')).traceEvents.length).toBeGreaterThan(5)
    expect(readFileSync(join(folder, 'flame.html'), 'utf8')).toMatch(/^<!doctype html>[^]*<title>main\.mjs<\/title>/)
  })

  it('prints JSON alone with --json, with what each node of a graph cost; also for a script that ends the process', () => {
    for (const [word, code] of turn([
      ['on', 0],
      ['exit', 3],
      ['fail', 1],
    ] as const)) {
      const profiled = tensorfx('profile', '--json', '--by', 'module', 'main.mjs', word)
      const { rows, graphs, error }: Profiled = JSON.parse(profiled.out)
      expect([profiled.code, profiled.err.split('\n')[0], error?.split('\n')[0]]).toEqual([
        code,
        `got ${word}`,
        word === 'fail' ? 'RangeError: mine' : undefined,
      ])
      expect(rows.map(({ name, calls }) => [name, calls]).slice(0, 2)).toEqual([
        ['Sequential', 2],
        ['Sequential.0', 2],
      ])
      expect(graphs.map(({ graph, nodes }) => [graph.replace(/\d+$/, ''), Object.keys(nodes)])).toEqual([
        ['Sequential', ['_0', '_1']],
        ['compiled_graph_', ['tanh', 'add']],
      ])
    }
  })

  it('refuses a file that cannot be written', () => {
    writeFileSync(join(folder, 'file'), '')
    const { code, out } = tensorfx('profile', '--flame', 'file/flame.html', 'empty.mjs')
    expect([code, out.split('\n')[0]]).toEqual([2, expect.stringMatching(/^tensorfx profile: file\/flame\.html cannot be written: /)])
    expect(existsSync(join(folder, 'file/flame.html'))).toBe(false)
  })
})
