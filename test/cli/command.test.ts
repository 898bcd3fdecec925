// The `tensorfx` command: the operator table, the version, the usage text.
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { VERSION } from 'tensorfx'
import { allOps } from 'tensorfx/ops'
import { runCommand } from '../../src/cli/command.ts'
import { root } from '../built/node.ts'

const cells = (line: string): string[] => line.split(/ {2,}/)

describe('tensorfx ops', () => {
  const lines = runCommand(['ops']).text.split('\n')

  it('lists every operator under aligned headings, and their number', () => {
    expect(runCommand(['ops']).code).toBe(0)
    expect(cells(lines[0] ?? '')).toEqual(['operator', 'how', 'gradient', 'schema'])
    expect(lines.slice(1, -1).map((line) => cells(line)[0])).toEqual(allOps().map((op) => op.qualname))
    expect(lines.at(-1)).toBe(`${allOps().length} operators`)
    const at = lines[0]?.indexOf('gradient')
    expect(lines.slice(1, -1).every((line) => /^ {2}(yes|no|through) ?/.test(line.slice((at ?? 0) - 2)))).toBe(true)
  })

  it.each([
    ['torch.relu', 'pointwise', 'yes'],
    ['torch.Tensor.add_', 'in place', 'yes'],
    ['torch.amax', 'reduction', 'yes'],
    ['torch.permute', 'view', 'yes'],
    ['torch.gather', 'kernel', 'yes'],
    ['torch.ops.tensorfx.full', 'kernel', 'no'],
    ['torch.chunk', 'composite', 'through its parts'],
  ])('%s is computed by a %s; gradient: %s', (name, how, gradient) => {
    const row = lines.map(cells).find(([first]) => first === name)
    expect(row?.slice(1, 3)).toEqual([how, gradient])
  })

  it('shows only names that contain the text', () => {
    const names = runCommand(['ops', 'soft'])
      .text.split('\n')
      .slice(1, -1)
      .map((line) => cells(line)[0])
    expect(names).toContain('torch.softmax')
    expect(names.every((name) => name?.includes('soft'))).toBe(true)
    expect(runCommand(['ops', 'nosuchthing']).text.split('\n').at(-1)).toBe('0 operators')
  })
})

describe('other arguments', () => {
  it('--version prints the version', () => expect(runCommand(['--version'])).toEqual({ text: VERSION, code: 0 }))

  it.each([[[]], [['--help']]])('%j prints the usage', (words: readonly string[]) => {
    const { text, code } = runCommand(words)
    expect(text).toContain('usage: tensorfx ops [text]')
    expect(text).toContain(VERSION)
    expect(code).toBe(0)
  })

  it('an unknown command prints the usage and fails', () => {
    expect(runCommand(['opps'])).toEqual({ ...runCommand([]), code: 1 })
  })
})

it('runs as a program', () => {
  expect(execFileSync(process.execPath, [`${root}dist/cli/main.js`, '--version'], { encoding: 'utf8' })).toBe(`${VERSION}\n`)
  expect(() => execFileSync(process.execPath, [`${root}dist/cli/main.js`, 'opps'], { stdio: 'pipe' })).toThrow('Command failed')
})
