// The `tensorfx` command: the operator table, the version, the usage text.
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { VERSION, torch } from 'tensorfx'
import { allOps } from 'tensorfx/ops'
import { runTensorfx } from '../../src/cli/commands.ts'
import { parseLine } from '../../src/cli/line.ts'
import type { Result } from '../../src/cli/line.ts'
import { terminalOf } from '../../src/cli/terminal.ts'
import { coreOperators } from '../../src/cli/coreAten.ts'
import { missingNames } from '../../src/cli/missingNames.ts'
import { camelCase } from '../../src/protocol/index.ts'
import { root } from '../built/node.ts'

const runCommand = async (words: readonly string[]): Promise<Result> => runTensorfx(words, { print: () => {}, note: () => {} })

const cells = (line: string): string[] => line.split(/ {2,}/)

const lines = (await runCommand(['ops'])).text.split('\n')

describe('tensorfx ops', () => {
  it('lists every operator under aligned headings, and their number', async () => {
    expect((await runCommand(['ops'])).code).toBe(0)
    expect(cells(lines[0] ?? '')).toEqual(['operator', 'in PyTorch', 'how', 'gradient', 'compiled', 'dtypes', 'schema'])
    expect(lines.slice(1, -1).map((line) => cells(line)[1])).toEqual(allOps().map((op) => op.qualname))
    expect(lines.slice(1, -1).map((line) => cells(line)[6])).toEqual(allOps().map((op) => op.schema.text))
    expect(lines.at(-1)).toBe(`${allOps().length} operators`)
    const at = lines[0]?.indexOf('gradient')
    expect(lines.slice(1, -1).every((line) => /^ {2}(yes|no|through) ?/.test(line.slice((at ?? 0) - 2)))).toBe(true)
  })

  it.each([
    ['torch.relu', 'torch.relu', 'pointwise', 'yes', 'fused', 'numeric'],
    ['torch.exp', 'torch.exp', 'pointwise', 'yes', 'fused', 'all'],
    ['torch.bitwiseAnd', 'torch.bitwise_and', 'pointwise', 'no', 'fused', 'integral'],
    ['torch.Tensor.add_', 'torch.Tensor.add_', 'in place', 'yes', 'fused', 'all'],
    ['torch.amax', 'torch.amax', 'reduction', 'yes', 'fused', 'all'],
    ['torch.permute', 'torch.permute', 'view', 'yes', 'view', 'all'],
    ['torch.gather', 'torch.gather', 'kernel', 'yes', 'eager kernel', 'all'],
    ['torch.mm', 'torch.mm', 'kernel', 'yes', 'template', 'numeric'],
    ['torch.linalg.qr', 'torch.linalg.qr', 'kernel', 'yes', 'eager kernel', 'floating'],
    ['torch.ops.tensorfx.full', 'torch.ops.tensorfx.full', 'kernel', 'no', 'fused', 'chosen'],
    ['torch.nn.functional.crossEntropy', 'torch.nn.functional.cross_entropy', 'composite', 'through its parts', 'its parts', 'floating'],
    ['torch.chunk', 'torch.chunk', 'composite', 'through its parts', 'its parts', 'all'],
  ])('%s, %s in PyTorch: %s; gradient %s; compiled %s; dtypes %s', (...wanted) => {
    expect(
      lines
        .map(cells)
        .find(([first]) => first === wanted[0])
        ?.slice(0, 6),
    ).toEqual(wanted)
  })

  it('shows only names that contain the text', async () => {
    const names = (await runCommand(['ops', 'soft'])).text
      .split('\n')
      .slice(1, -1)
      .map((line) => cells(line)[1])
    expect(names).toContain('torch.softmax')
    expect(names.every((name) => name?.includes('soft'))).toBe(true)
    const table = async (text: string): Promise<number> => (await runCommand(['ops', text])).text.split('\n').length
    expect(await table('logSoftmax')).toBe(await table('log_softmax'))
    expect((await runCommand(['ops', 'nosuchthing'])).text.split('\n').at(-1)).toBe('0 operators')
  })
})

describe('tensorfx ops --missing', () => {
  it('lists what torch, its tensors and core ATen have that tensorfx lacks, each with the reason', async () => {
    const { text, code } = await runCommand(['ops', '--missing'])
    const lines = text.split('\n')
    const missing = coreOperators().filter(({ here }) => here === null)
    expect(code).toBe(0)
    expect(lines.at(-1)).toBe(`${missing.length} of the 164 operators of core ATen`)
    const names = missingNames()
    expect(lines.at(-2)).toBe(`${names.length} functions of torch and methods of its tensors`)
    expect(lines.slice(0, -2).map(cells)).toEqual([
      ...names.map(({ name, reason }) => [name, reason]),
      ...missing.map(({ aten, reason }) => [`aten.${aten}`, reason ?? 'not written yet']),
    ])
    expect(cells(lines.find((line) => line.startsWith('torch.segment_reduce')) ?? '')[1]).toBe('it is missing: rare statistics')
    expect(cells(lines.find((line) => line.startsWith('torch.Tensor.cuda')) ?? '')[1]).toContain('`x.to(device)` moves it')
    expect(cells(lines.find((line) => line.startsWith('aten._fft_c2r')) ?? '')[1]).toBe('torch.fft computes it, from kernels of its own')
  })

  it('names for every other operator of core ATen what does the same', () => {
    const names = new Set(allOps().map(({ qualname }) => qualname))
    const tensor = torch.zeros([1])
    for (const { aten, here } of coreOperators())
      if (here !== null) expect(names.has(here) || camelCase(here.replace('torch.Tensor.', '')) in tensor, aten).toBe(true)
    const here = new Map(coreOperators().map((operator) => [operator.aten, operator.here]))
    expect(here.size).toBe(164)
    expect(['_softmax', 'add', 'sym_numel', 'bmm'].map((name) => here.get(name))).toEqual([
      'torch.softmax',
      'torch.add',
      'torch.Tensor.numel',
      'torch.bmm',
    ])
  })
})

describe('other arguments', () => {
  it('--version prints the version', async () => expect(await runCommand(['--version'])).toEqual({ text: VERSION, code: 0 }))

  it.each([[[]], [['--help']], [['-h']]])('%j prints a line for every form of every command', async (words: readonly string[]) => {
    const { text, code } = await runCommand(words)
    expect(code).toBe(0)
    expect(text.split('\n')[0]).toBe(`tensorfx ${VERSION}`)
    const forms = [
      'ops [TEXT]',
      'ops --missing',
      'compare FOLDER',
      'minify MODEL',
      'run -n N [options] FILE.mjs',
      'repro pack FILE.mjs',
      'repro run FILE.tgz|FILE.mjs',
      'info WEIGHTS',
      'graph FILE',
      'view FILE',
      'diff A B',
      'explain SCRIPT',
      'profile [options] SCRIPT',
      'doctor',
      '--version',
    ]
    for (const form of forms) expect(text).toContain(`\n  tensorfx ${form}`)
  })

  it.each([
    ['ops', '--missing'],
    ['compare', '--backends A,B'],
    ['minify', '--max-runs N'],
    ['run', '--restarts N'],
    ['repro pack', '--backend M#NAME'],
    ['repro run', '--dir FOLDER'],
    ['repro', '--out FILE.tgz'],
  ])('%s --help lists its options', async (name, option) => {
    const { text, code } = await runCommand([...name.split(' '), '--help'])
    expect([code, text.startsWith(`usage: tensorfx ${name}`)]).toEqual([0, true])
    expect(text).toMatch(new RegExp(`^  ${option.replaceAll(/[.#]/g, '.')}  +\\S`, 'm'))
    // Meanings stand under each other.
    const starts = text.split('\n').flatMap((line) => /^ {2}\S.*? {2,}(?=\S)/.exec(line)?.[0].length ?? [])
    expect(new Set(starts).size).toBe(1)
  })

  it('an unknown command is called unknown, with the nearest name and the usage', async () => {
    const usage = (await runCommand([])).text
    for (const [word, error] of [
      ['opps', "unknown command 'opps'. Did you mean 'ops'?"],
      ['rpro', "unknown command 'rpro'. Did you mean 'repro'?"],
      ['xyzzyxyzzy', "unknown command 'xyzzyxyzzy'."],
    ] as const)
      expect(await runCommand([word])).toEqual({ text: `${error}\n${usage}`, code: 2, data: { error } })
    const { text, code } = await runCommand(['ops', '--mising'])
    expect([code, text.split('\n')[0]]).toEqual([2, "tensorfx ops: unknown option '--mising'. Did you mean '--missing'?"])
    expect((await runCommand(['ops', 'a', 'b'])).text).toMatch(/^tensorfx ops: expected one text, got 2\.\nusage: tensorfx ops/)
  })
})

describe('what every command has', () => {
  const plain = { print: () => {}, note: () => {} }

  it.each([['ops'], ['compare'], ['minify'], ['run'], ['repro'], ['repro pack'], ['repro run']])('tensorfx help %s is its --help', async (name) => {
    const help = await runCommand(['help', ...name.split(' ')])
    expect(help).toEqual(await runCommand([...name.split(' '), '--help']))
    expect([help.code, help.text.startsWith(`usage: tensorfx ${name}`)]).toEqual([0, true])
  })

  it('tensorfx help lists all commands, and refuses an unknown one', async () => {
    expect(await runCommand(['help'])).toEqual(await runCommand([]))
    const { text, code } = await runCommand(['help', 'opps'])
    expect([code, text.split('\n')[0]]).toEqual([2, "unknown command 'opps'. Did you mean 'ops'?"])
  })

  it('--json prints data, at any place in the line, and errors as data', async () => {
    const { text, code } = await runCommand(['ops', '--json', 'relu'])
    const rows: unknown = JSON.parse(text)
    expect(code).toBe(0)
    expect(rows).toEqual(
      expect.arrayContaining([
        {
          name: 'torch.relu',
          torchName: 'torch.relu',
          how: 'pointwise',
          gradient: 'yes',
          compiled: 'fused',
          dtypes: 'numeric',
          schema: expect.any(String) as string,
        },
      ]),
    )
    expect(await runCommand(['ops', 'relu', '--json'])).toMatchObject({ text })
    expect(JSON.parse((await runCommand(['ops', '--missing', '--json'])).text)).toContainEqual({
      name: 'torch.segment_reduce',
      reason: 'it is missing: rare statistics',
    })
    const wrong = await runCommand(['ops', '--mising', '--json'])
    expect([wrong.code, JSON.parse(wrong.text)]).toEqual([2, { error: "unknown option '--mising'. Did you mean '--missing'?" }])
    for (const name of ['compare', 'minify', 'repro pack'])
      expect((await runCommand([...name.split(' '), '--help'])).text, name).toMatch(/^ {2}--json {2}/m)
    // Their words are for another program.
    for (const name of ['run', 'repro run']) expect((await runCommand([...name.split(' '), '--help'])).text, name).not.toContain('--json')
  })

  it.each([
    [['compare', 'x', '--tol', '0'], "--tol needs a positive number, got '0'."],
    [['compare', 'x', '--worst-input=1.5'], "--worst-input needs a whole number of at least 1, got '1.5'."],
    [['compare', 'x', '--reference', 'float32'], "--reference is float64 or eager, got 'float32'."],
    [['minify', 'x', '--exit-code', ''], "--exit-code needs a whole number of at least 1, got ''."],
    [['ops', '--missing=yes'], "--missing takes no value, got 'yes'."],
    [['ops', '-x'], "unknown option '-x'."],
    [['repro', 'pack', 'x', '--backend'], '--backend needs a value.'],
  ])('%j: %s', async (words, message) => {
    const { text, code } = await runCommand(words)
    expect([code, text.split('\n')[0]]).toEqual([2, `tensorfx ${words[0]}: ${message}`])
  })

  it('tables and help fit the terminal, and lose nothing in a file', async () => {
    for (const words of [
      ['ops', 'conv'],
      ['ops', '--missing'],
      ['minify', '--help'],
    ]) {
      const wide = (await runTensorfx(words, plain)).text.split('\n')
      const narrow = (await runTensorfx(words, { ...plain, terminal: { columns: 90, isColored: false } })).text.split('\n')
      expect(Math.max(...wide.map((line) => line.length))).toBeGreaterThan(90)
      // The lines that say how exit codes and forms read are no table.
      expect(
        Math.max(...narrow.filter((line) => !line.startsWith('The ') && !line.startsWith('usage')).map((line) => line.length)),
      ).toBeLessThanOrEqual(90)
    }
    const words = (text: string): string[] => text.split(/\s+/)
    const [wide, narrow] = await Promise.all(
      [null, 90].map(async (columns) => runTensorfx(['minify', '--help'], { ...plain, terminal: { columns, isColored: false } })),
    )
    expect(words(narrow?.text ?? '')).toEqual(words(wide?.text ?? ''))
  })

  it('knows a terminal with colors from one without, and from a file', () => {
    expect(terminalOf({}, {})).toEqual({ columns: null, isColored: false })
    expect(terminalOf({ isTTY: true, columns: 80 }, {})).toEqual({ columns: 80, isColored: true })
    expect(terminalOf({ isTTY: true, columns: 80 }, { NO_COLOR: '' }).isColored).toBe(true)
    expect(terminalOf({ isTTY: true, columns: 80 }, { NO_COLOR: '1' }).isColored).toBe(false)
    expect(terminalOf({ isTTY: true, columns: 80 }, { TERM: 'dumb' }).isColored).toBe(false)
    expect(terminalOf({ isTTY: false, columns: 80 }, {})).toEqual({ columns: null, isColored: false })
    // FORCE_COLOR decides where it is set, as in Node.
    expect(terminalOf({}, { FORCE_COLOR: '1' })).toEqual({ columns: null, isColored: true })
    expect(terminalOf({ isTTY: true }, { FORCE_COLOR: '1', NO_COLOR: '1', TERM: 'dumb' }).isColored).toBe(true)
    expect(terminalOf({ isTTY: true }, { FORCE_COLOR: '0' }).isColored).toBe(false)
  })
})

describe('the words of a command', () => {
  const options = [
    { name: '--out', value: 'FILE', text: '' },
    { name: '-n', value: 'N', text: '' },
    { name: '--all', value: null, text: '' },
  ]
  const read = (passesOn: boolean | 'afterOperand', ...words: string[]): unknown => {
    const line = parseLine(words, { options, passesOn })
    return [line.operands, Object.fromEntries(line.options)]
  }

  it('are operands and options, with values that follow or are attached', () => {
    expect(read(false, 'a', '--out', '-b', '--all', 'c', '-n', '3')).toEqual([['a', 'c'], { '--out': '-b', '--all': '', '-n': '3' }])
    expect(read(false, '--out=x=y', 'a')).toEqual([['a'], { '--out': 'x=y' }])
    expect(read(false, '--out', '1', '--out', '2')).toEqual([[], { '--out': '2' }])
    expect(read(false, '--', '--all')).toEqual([['--all'], {}])
    expect(() => read(false, '-n3')).toThrow("unknown option '-n3'.")
    expect(() => read(false, '-xyz')).toThrow("unknown option '-xyz'.")
    expect(() => read(false, '--al')).toThrow("unknown option '--al'.")
  })

  it('go on to another program as they are', () => {
    expect(read(true, 'f', '-abc', '--mine=1', '--out', 'o', '-abc', 'x')).toEqual([['f', '-abc', '--mine=1', '-abc', 'x'], { '--out': 'o' }])
    expect(read('afterOperand', '-n', '2', 'f', '--all', '--', '-n', '3')).toEqual([['f', '--all', '--', '-n', '3'], { '-n': '2' }])
    expect(() => read('afterOperand', '-np', '2', 'f')).toThrow("unknown option '-np'.")
  })
})

it('runs as a program', () => {
  expect(execFileSync(process.execPath, [`${root}dist/cli/main.js`, '--version'], { encoding: 'utf8' })).toBe(`${VERSION}\n`)
  expect(() => execFileSync(process.execPath, [`${root}dist/cli/main.js`, 'opps'], { stdio: 'pipe' })).toThrow('Command failed')
})
