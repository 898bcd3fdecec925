// The inputs of a repro on disk, and what is written around them: storages by content, the record of a run, the names of folders.
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { InputReader, InputWriter, MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import type { FileStore } from 'tensorfx/debug'
import { Graph, GraphModule } from 'tensorfx/fx'
import { dumpCheckpoint } from '../../src/debug/checkpoint.ts'
import { joinPath, workingDirectory } from '../../src/debug/fileStore.ts'
import { log, warnOnce } from '../../src/debug/log.ts'
import { readRecord, writeRecord } from '../../src/debug/record.ts'
import { writeRepro } from '../../src/debug/reproScript.ts'
import { fromPlain, toPlain } from '../../src/debug/values.ts'
import { listen, textOf } from './inProcess.ts'

let said: [string, string][] = []
let store = new MemoryFileStore()
const nodeStore = fileStore()
beforeEach(() => {
  said = listen()
  store = new MemoryFileStore()
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
})

const sha1 = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
const bytesOf = (x: Tensor): Uint8Array => {
  const plain = toPlain(x, 'x')
  if (plain.kind !== 'tensor') throw new Error('not a tensor')
  return plain.bytes
}

describe('an InputWriter', () => {
  it('writes each storage once, under the SHA-1 of its bytes, and a line for each input', () => {
    const writer = new InputWriter(store, 'dir')
    const x = torch.tensor([1, 2, 3, 4, 5, 6]).reshape([2, 3])
    const hash = sha1(bytesOf(x))
    writer.add('x', x)
    writer.add('again', x.clone())
    writer.add('k', 2.5)
    writer.add('nan', NaN)
    writer.add('a\nb', x.reshape([6]))
    expect([...store.files.keys()]).toEqual([`dir/storages/${hash}`])
    expect(store.files.get(`dir/storages/${hash}`)).toEqual(bytesOf(x))
    expect(writer.lines()).toEqual([
      `const buf0 = reader.storage('${hash}', 24)`,
      'reader.tensor(buf0, [2, 3]) // x',
      'reader.tensor(buf0, [2, 3]) // again',
      'reader.number(2.5) // k',
      'reader.number(NaN) // nan',
      'reader.tensor(buf0, [6]) // a b',
    ])
  })

  it('says strides, dtype and requiresGrad where they are not the usual ones', () => {
    const writer = new InputWriter(store, 'dir')
    const expression = (x: Tensor): string => writer.expression('x', x).replace(/buf\d/, 'buf')
    expect(expression(torch.ones([2, 3]).t())).toBe('reader.tensor(buf, [3, 2], { strides: [1, 3] })')
    expect(expression(torch.ones([2], { dtype: 'int32' }))).toBe("reader.tensor(buf, [2], { dtype: 'int32' })")
    expect(expression(torch.ones([3, 2], { dtype: 'float64', requiresGrad: true }).t())).toBe(
      "reader.tensor(buf, [2, 3], { strides: [1, 2], dtype: 'float64', requiresGrad: true })",
    )
    expect(writer.lines()[1]).toMatch(/^const buf1 = reader\.storage\('\w{40}', 8, \{ dtypeHint: 'int32' \}\)$/)
  })

  it('leaves a storage that is there, replaces one of another length, and takes back only what it has made', () => {
    const x = torch.tensor([1, 2])
    const y = torch.tensor([3, 4])
    const path = (t: Tensor): string => `dir/storages/${sha1(bytesOf(t))}`
    store.write(path(x), new Uint8Array(3))
    const writer = new InputWriter(store, 'dir')
    writer.add('x', x)
    writer.add('y', y)
    expect(store.files.get(path(x))).toEqual(bytesOf(x))
    writer.takeBack()
    expect([...store.files.keys()]).toEqual([path(x)])
    let writes = 0
    const counting: FileStore = { read: (file) => store.read(file), write: () => void writes++ }
    new InputWriter(counting, 'dir').add('x', x)
    expect(writes).toBe(0)
    // A store that cannot remove keeps them.
    const other = new InputWriter(counting, 'dir')
    other.add('y', y)
    other.takeBack()
    expect(writes).toBe(1)
  })

  it('refuses what is neither a tensor nor a number', () => {
    const writer = new InputWriter(store, 'dir')
    expect(() => writer.add('x', 'text')).toThrow("input 'x' is neither a Tensor nor a number (got string); a repro can only hold those.")
    expect(() => writer.add('x', null)).toThrow('(got null)')
  })
})

describe('an InputReader', () => {
  it('reads what an InputWriter has written', () => {
    const inputs = [
      torch
        .tensor([
          [1, 2, 3],
          [4, 5, 6],
        ])
        .t(),
      torch.tensor([1, 2], { dtype: 'int64' }),
      torch.tensor([0.5], { requiresGrad: true }),
      torch.tensor([true, false]),
      -0,
    ]
    const writer = new InputWriter(store, 'dir')
    inputs.forEach((input, i) => writer.add(`i${i}`, input))
    const reader = new InputReader(store, 'dir')
    new Function('reader', writer.lines().join('\n'))(reader)
    const read = reader.args.map((arg) => (typeof arg === 'number' ? arg : [arg.toArray(), arg.dtype, arg.strides, arg.requiresGrad]))
    expect(read).toEqual(inputs.map((arg) => (typeof arg === 'number' ? arg : [arg.toArray(), arg.dtype, arg.strides, arg.requiresGrad])))
    expect(said).toEqual([])
  })

  it('gives random data, with a warning, where a file is missing', () => {
    const reader = new InputReader(store, 'dir')
    const value = reader.tensor(reader.storage('abc', 400), [100])
    expect(said).toEqual([['warning', 'could not load abc, generating random data instead']])
    expect(value.shape).toEqual([100])
    expect(Number(value.std().item())).toBeGreaterThan(0.5)
    expect(reader.tensor(reader.storage('def', 16), [2], { dtype: 'int64' }).toArray()).toEqual([0, 0])
    expect(reader.tensor(reader.storage('ghi', 4), [2, 3], { strides: [0, 0] }).shape).toEqual([2, 3])
  })

  it('gives random data without a folder, and says so once', () => {
    for (const make of [() => new InputReader(null, 'dir'), () => new InputReader(store, null)]) {
      said.length = 0
      const reader = make()
      reader.number(3)
      expect([reader.args[0], said]).toEqual([3, [['warning', 'no saveDir specified, will generate random data']]])
    }
    const reader = new InputReader(store, null)
    said.length = 0
    expect(reader.tensor(reader.storage('abc', 0), [0]).shape).toEqual([0])
    expect(said).toEqual([])
  })

  it('loads a constant of a module without making it an argument', () => {
    const reader = new InputReader(store, null)
    const value = reader.load({ bytes: new Uint8Array(new Float32Array([1, 2]).buffer), nbytes: 8 }, [2])
    expect([value.toArray(), value.requiresGrad, reader.args]).toEqual([[1, 2], false, []])
  })

  it('refuses damaged files and layouts that cannot be', () => {
    store.write('dir/storages/abc', new Uint8Array(7))
    const reader = new InputReader(store, 'dir')
    expect(() => reader.storage('abc', 8)).toThrow('reader.storage: abc has 7 bytes but the script expects 8; the file is damaged.')
    const storage = { bytes: new Uint8Array(8), nbytes: 8 }
    expect(() => reader.tensor(storage, [2], { dtype: 'float128' as never })).toThrow("reader.tensor: unknown dtype 'float128'.")
    expect(() => reader.tensor(storage, [2], { strides: [1, 1] })).toThrow('reader.tensor: a shape of 1 sizes needs as many strides, got 2.')
    expect(() => reader.tensor(storage, [-1])).toThrow(/^reader\.tensor: shape.*-1/)
    expect(() => reader.tensor(storage, [2 ** 30, 2 ** 30])).toThrow('is too large.')
    expect(() => reader.tensor(storage, [2], { stride: [1] } as never)).toThrow(/InputReader\.tensor.*stride/)
  })
})

describe('values as plain data', () => {
  it('come back as they were', () => {
    for (const value of [
      torch
        .tensor(
          [
            [1, 2],
            [3, 4],
          ],
          { requiresGrad: true },
        )
        .t(),
      torch.tensor([1], { dtype: 'int64' }),
    ]) {
      const back = fromPlain(toPlain(value, 'x')) as Tensor
      expect([back.toArray(), back.dtype, back.strides, back.requiresGrad]).toEqual([value.toArray(), value.dtype, value.strides, value.requiresGrad])
    }
    expect(fromPlain(toPlain(3, 'k'))).toBe(3)
  })

  it('are checked', () => {
    const plain = { kind: 'tensor', shape: [1], strides: [1], dtype: 'float32', requiresGrad: false, bytes: new Uint8Array(4) } as const
    expect(() => fromPlain({ ...plain, dtype: 'f32' as never })).toThrow("fromPlain: unknown dtype 'f32'.")
    expect(() => fromPlain({ ...plain, shape: [-1] })).toThrow(/^fromPlain: shape.*-1/)
    expect(() => fromPlain({ ...plain, strides: [0.5] })).toThrow(/^fromPlain: strides.*0\.5/)
    expect(() => fromPlain({ ...plain, strides: [] })).toThrow('fromPlain: a shape of 1 sizes needs as many strides, got 0.')
  })
})

describe('the record of a run', () => {
  it('is read as it was written', () => {
    writeRecord(store, 'r.json', 'compile', 'started')
    expect(readRecord(store, 'r.json')).toEqual({ phase: 'compile', state: 'started', pid: process.pid })
    writeRecord(store, 'r.json', 'run', 'ended')
    expect(readRecord(store, 'r.json')).toEqual({ phase: 'run', state: 'ended', pid: process.pid })
  })

  it.each([
    '',
    '{',
    '3',
    'null',
    '{}',
    '{"phase":"run","state":"ended"}',
    '{"phase":"walk","state":"ended","pid":1}',
    '{"phase":"run","state":"lost","pid":1}',
  ])('that says %j is none', (text) => {
    store.write('r.json', text)
    expect(readRecord(store, 'r.json')).toBeNull()
  })

  it('that is not there is none', () => {
    expect(readRecord(store, 'r.json')).toBeNull()
  })
})

describe('paths', () => {
  it('begin where the program runs, and nowhere where there are no folders', () => {
    expect(workingDirectory()).toBe(process.cwd())
    for (const host of [{}, undefined]) {
      vi.stubGlobal('process', host)
      expect(workingDirectory()).toBe('')
    }
    vi.unstubAllGlobals()
  })

  it('have single slashes', () => {
    expect(joinPath('/a/', '//b', 'c')).toBe('/a/b/c')
  })

  it('of a run are its own, below the root', async () => {
    vi.resetModules()
    const { debugDirectory } = await import('../../src/debug/fileStore.ts')
    expect(debugDirectory('/somewhere')).toMatch(new RegExp(`^/somewhere/run_\\d{4}(_\\d\\d){5}_\\d{3}-pid_${process.pid}$`))
    expect(debugDirectory('/somewhere')).toBe(debugDirectory('/somewhere'))
    expect(debugDirectory(null)).toBe(debugDirectory(`${process.cwd()}/tensorfx_compile_debug`))
  })
})

it('a warning that is repeated is shown the first time', () => {
  for (const message of ['first of two', 'second of two', 'first of two']) warnOnce(message)
  expect(said).toEqual([
    ['warning', 'first of two'],
    ['warning', 'second of two'],
  ])
})

it('the log writes to standard error, warnings and errors with their level, until another sink is set', () => {
  const written: unknown[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation((text) => void written.push(text))
  const mine = setLogSink(null)
  log.info('progress')
  log.warning('careful')
  log.error('wrong')
  expect(written).toEqual(['progress', '[tensorfx warning] careful', '[tensorfx error] wrong'])
  setLogSink(mine)
  log.info('heard')
  expect([written.length, said.at(-1)]).toEqual([3, ['info', 'heard']])
  spy.mockRestore()
})

it('files in memory are copies of what is written', () => {
  const bytes = Uint8Array.of(1, 2)
  store.write('a', bytes)
  bytes[0] = 9
  store.write('b', 'text')
  expect([store.read('a'), textOf(store, 'b'), store.read('c')]).toEqual([Uint8Array.of(1, 2), 'text', null])
  store.remove('a')
  expect(store.read('a')).toBeNull()
})

describe('a checkpoint', () => {
  const graph = new Graph()
  graph.output([graph.callFunction(torch.relu, [graph.placeholder('x')])])
  const gm = new GraphModule({}, graph)
  const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
  const options = { after: 'aot', spec, imports: [] } as const
  const copy = `${process.cwd()}/repro.mjs`

  it('is a script in the folder of the run, and a copy of it in the working directory', () => {
    setFileStore(store)
    const lines: string[] = []
    expect(dumpCheckpoint('/run', gm, [torch.ones([1])], options, (line) => void lines.push(line))).toBe(copy)
    const script = '/run/minifier/checkpoints/3.mjs'
    expect(lines).toEqual([`Writing checkpoint with 3 nodes to ${script}`, `Copying repro file for convenience to ${copy}`])
    expect(textOf(store, script)).toContain("command: 'run'")
    // The same program; only the paths differ.
    const lineOf = (path: string, what: string): string | undefined =>
      textOf(store, path)
        .split('\n')
        .find((line) => line.includes(what))
    expect([lineOf(copy, 'reader.tensor'), lineOf(script, 'saveDir:')]).toEqual([
      lineOf(script, 'reader.tensor'),
      "  saveDir: new URL('./', import.meta.url),",
    ])
    expect(lineOf(copy, 'saveDir:')).toMatch(/new URL\('(\.\.\/)+run\/minifier\/checkpoints\/'/)
  })

  it('is the script alone where the copy cannot be written', () => {
    const readOnly: FileStore = {
      read: (path) => store.read(path),
      write: (path, content) => {
        if (path === copy) throw new Error('EACCES')
        store.write(path, content)
      },
    }
    setFileStore(readOnly)
    expect(dumpCheckpoint('/run', gm, [torch.ones([1])], options, () => {})).toBe('/run/minifier/checkpoints/3.mjs')
    expect(said).toEqual([['warning', `No write permissions for ${copy} (Error: EACCES)`]])
  })

  it('that cannot be written whole leaves nothing', () => {
    expect(() => writeRepro(store, '/a.mjs', '/dir', gm, [torch.ones([1]), 'text'], { ...options, command: 'run' })).toThrow("input 'arg1'")
    expect([...store.files.keys()]).toEqual([])
  })
})
