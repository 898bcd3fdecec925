// Frames of stack traces: what is parsed, what is left out, and the source around them.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { removeFolder, temporaryFolder } from '../helpers/folder.ts'
import { markOwn } from '../../src/provenance/codeFrame.ts'
import { codeFrame, parseStack, sourceLine } from '../../src/provenance/index.ts'
import type { Frame } from '../../src/provenance/index.ts'

const own = new URL('../../src/', import.meta.url)
const parse = (...lines: string[]): Frame[] => parseStack(lines.join('\n'))
const only = (line: string): Frame | undefined => parse(line)[0]

describe('parseStack', () => {
  test('reads V8’s frames, the innermost last', () => {
    expect(
      parse('Error: stack', '    at inner (file:///app/model.ts:3:14)', '    at Model.forward (/app/model.ts:10:5)', '    at /app/main.ts:20:1'),
    ).toEqual([
      { file: '/app/main.ts', line: 20, column: 1, fn: '<anonymous>' },
      { file: '/app/model.ts', line: 10, column: 5, fn: 'Model.forward' },
      { file: '/app/model.ts', line: 3, column: 14, fn: 'inner' },
    ])
  })

  test('reads the frames of Firefox and Safari', () => {
    expect(parse('inner@https://host/model.js:3:14', '@https://host/main.js:20:1')).toEqual([
      { file: 'https://host/main.js', line: 20, column: 1, fn: '<anonymous>' },
      { file: 'https://host/model.js', line: 3, column: 14, fn: 'inner' },
    ])
    expect(only('async*load@https://host/a.js:12:34')?.fn).toBe('load')
  })

  test('names lose what the engine adds to them', () => {
    const nameOf = (text: string): string | undefined => only(`    at ${text} (/app/a.ts:1:2)`)?.fn
    expect(
      ['new Model', 'async load', 'Object.run', 'Module.run', 'Proxy.run', 'Model.call [as forward]', 'Model.new', 'Object.Module.run'].map(nameOf),
    ).toEqual(['Model', 'load', 'run', 'run', 'run', 'Model.call', 'Model.new', 'Module.run'])
    expect(only('    at async file:///app/a.ts:7:8')).toEqual({ file: '/app/a.ts', line: 7, column: 8, fn: '<anonymous>' })
  })

  test('file URLs become paths, and lose queries; other URLs stay URLs', () => {
    const fileOf = (url: string): string | undefined => only(`    at f (${url}:12:34)`)?.file
    expect(
      ['file:///C:/a%20b.ts?t=1', 'file:///home/me/a.ts#x', 'file:///home/%zz.ts', 'https://host/a.js?v=2', '/a/b.ts', 'file:///c/d.ts'].map(fileOf),
    ).toEqual(['C:/a b.ts', '/home/me/a.ts', '/home/%zz.ts', 'https://host/a.js', '/a/b.ts', '/c/d.ts'])
  })

  test('lines that are not frames are left out', () => {
    expect(parse('Error: at f (a.ts:1:2) and more', '', 'TypeError', '    at f (a.ts:1)', '    at f (native)', 'see x at f (a.ts:1:2)')).toEqual([])
  })

  test('frames of tensorfx, of the host and of generated code are left out', () => {
    const urls = [
      'node:internal/process/task_queues',
      'native array.js',
      '<anonymous>',
      `${own.href}fx/graph/node.ts`,
      `${own.pathname}fx/graph/node.ts`,
      '/app/tensorfx-generated/forward.js',
      'wasm://wasm/0f0f',
      '/app/node_modules/vitest/dist/index.js',
      '/app/node_modules/@vitest/runner/dist/index.js',
      'eval at compile (/app/a.ts:1:1), <anonymous>',
    ]
    for (const url of urls) expect(only(`    at f (${url}:12:34)`)).toBeUndefined()
    for (const url of ['/app/native.ts', '/app/node.ts', '/app/node_modules/other/index.js', '/app/src/fx/graph/node.ts']) {
      expect(only(`    at f (${url}:12:34)`)?.file).toBe(url)
    }
  })

  test('equal lines share one frozen frame', () => {
    const [first, second] = parse('    at f (/app/shared.ts:1:2)', '    at f (/app/shared.ts:1:2)')
    expect(first).toBe(second)
    expect(Object.isFrozen(first)).toBe(true)
  })
})

describe('the source around a frame', () => {
  const folder = temporaryFolder('frames-')
  const file = join(folder, 'source.ts')
  writeFileSync(file, Array.from({ length: 12 }, (_, i) => `line ${i + 1}`).join('\n'))
  const mine = (frame: Frame): Frame => {
    markOwn([frame])
    return frame
  }
  const at = (line: number, column = 1): Frame => mine({ file, line, column, fn: 'f' })

  test('of a frame that comes from elsewhere is only what it says itself, and its file is not opened', () => {
    const foreign: Frame = { file, line: 1, column: 1, fn: 'f' }
    expect([sourceLine(foreign), codeFrame(foreign)]).toEqual([null, null])
    expect([sourceLine({ ...foreign, code: 'x.relu()' }), codeFrame({ ...foreign, code: 'x.relu()' })]).toEqual(['x.relu()', '> 1 | x.relu()'])
  })

  test('sourceLine is the line itself', () => {
    expect([sourceLine(at(1)), sourceLine(at(12)), sourceLine(at(13))]).toEqual(['line 1', 'line 12', null])
  })

  test('codeFrame marks the line and the column, and aligns the numbers', () => {
    expect(codeFrame(at(8, 6))).toBe(
      ['   6 | line 6', '   7 | line 7', '>  8 | line 8', '     |      ^', '   9 | line 9', '  10 | line 10'].join('\n'),
    )
    expect(codeFrame(at(5, 1), 1)).toBe(['  4 | line 4', '> 5 | line 5', '    | ^', '  6 | line 6'].join('\n'))
    expect(codeFrame(at(5, 0), 0)).toBe(['> 5 | line 5', '    | ^'].join('\n'))
  })

  test('codeFrame ends where the file does', () => {
    expect(codeFrame(at(1), 1)).toBe(['> 1 | line 1', '    | ^', '  2 | line 2'].join('\n'))
    expect(codeFrame(at(12), 1)).toBe(['  11 | line 11', '> 12 | line 12', '     | ^'].join('\n'))
    expect(codeFrame(at(13))).toBeNull()
  })

  test('a file that cannot be read has no source', () => {
    const missing = mine({ file: join(folder, 'missing.ts'), line: 1, column: 1, fn: 'f' })
    expect([sourceLine(missing), codeFrame(missing)]).toEqual([null, null])
  })

  test('a file is read once', () => {
    const changing = join(folder, 'changing.ts')
    writeFileSync(changing, 'before')
    const frame = mine({ file: changing, line: 1, column: 1, fn: 'f' })
    expect(sourceLine(frame)).toBe('before')
    writeFileSync(changing, 'after')
    expect(sourceLine(frame)).toBe('before')
  })
})

test('the lines of a file are kept for a while, not those of every file that a long-lived process ever saw', () => {
  const many = mkdtempSync(join(tmpdir(), 'tensorfx-many-'))
  try {
    const frames = Array.from({ length: 151 }, (_, i): Frame => ({ file: join(many, `${i}.ts`), line: 1, column: 1, fn: 'f' }))
    markOwn(frames)
    const lines = (): (string | null)[] => frames.map((frame) => sourceLine(frame))
    for (const { file } of frames) writeFileSync(file, 'before')
    expect(new Set(lines())).toEqual(new Set(['before']))
    for (const { file } of frames) writeFileSync(file, 'after')
    // The last one first, since reading the others makes place for them.
    expect(sourceLine(frames[150] ?? { file: '', line: 1, column: 1, fn: '' })).toBe('before')
    expect(sourceLine(frames[0] ?? { file: '', line: 1, column: 1, fn: '' })).toBe('after')
  } finally {
    removeFolder(many)
  }
})
