// The `tensorfx` command: the operator table, the version, the usage text.
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { VERSION, torch } from 'tensorfx'
import { allOps } from 'tensorfx/ops'
import { runTensorfx } from '../../src/cli/commands.ts'
import type { Result } from '../../src/cli/line.ts'
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
    expect(cells(lines.find((line) => line.startsWith('torch.polar')) ?? '')[1]).toBe('there are no complex numbers')
    expect(cells(lines.find((line) => line.startsWith('torch.Tensor.cuda')) ?? '')[1]).toBe('there are no devices and no memory formats')
    expect(cells(lines.find((line) => line.startsWith('aten._fft_c2r')) ?? '')[1]).toBe('there are no complex numbers')
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
    expect(await runCommand(['opps'])).toEqual({ text: `unknown command 'opps'. Did you mean 'ops'?\n${usage}`, code: 1 })
    expect(await runCommand(['rpro'])).toEqual({ text: `unknown command 'rpro'. Did you mean 'repro'?\n${usage}`, code: 1 })
    expect(await runCommand(['xyzzyxyzzy'])).toEqual({ text: `unknown command 'xyzzyxyzzy'.\n${usage}`, code: 1 })
    const { text, code } = await runCommand(['ops', '--mising'])
    expect([code, text.split('\n')[0]]).toEqual([2, "tensorfx ops: unknown option '--mising'. Did you mean '--missing'?"])
    expect((await runCommand(['ops', 'a', 'b'])).text).toMatch(/^tensorfx ops: expected one text, got 2\.\nusage: tensorfx ops/)
  })
})

it('runs as a program', () => {
  expect(execFileSync(process.execPath, [`${root}dist/cli/main.js`, '--version'], { encoding: 'utf8' })).toBe(`${VERSION}\n`)
  expect(() => execFileSync(process.execPath, [`${root}dist/cli/main.js`, 'opps'], { stdio: 'pipe' })).toThrow('Command failed')
})
