// Where dumps go: files of the file system, which are whole or not there, and files in memory.
import fs from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { MemoryFileStore, fileStore, setFileStore } from 'tensorfx/debug'
import { temporaryFolder } from '../helpers/folder.ts'
import { checkStore, joinPath } from '../../src/debug/files/fileStore.ts'

const work = temporaryFolder('tensorfx-files-')
const nodeStore = fileStore()
const folder = process.cwd()
afterEach(() => {
  vi.unstubAllGlobals()
  setFileStore(nodeStore)
})

/** The store of a process whose file system is that of this one but for some functions. */
async function storeWith(changes: Partial<Record<keyof typeof fs, unknown>>, pid?: number): Promise<typeof nodeStore> {
  vi.resetModules()
  const { fileStore: fresh } = await import('../../src/debug/files/fileStore.ts')
  const modules: Readonly<Record<string, unknown>> = { 'node:fs': { ...fs, ...changes }, 'node:path': path }
  vi.stubGlobal('process', { pid, cwd: () => work, getBuiltinModule: (name: string) => modules[name] })
  const store = fresh()
  expect(fresh()).toBe(store)
  return store
}

const text = (bytes: Uint8Array | null): string | null => (bytes === null ? null : new TextDecoder().decode(bytes))
const here = (...parts: readonly string[]): string => path.join(work, ...parts)
const listOf = (...parts: readonly string[]): string[] => fs.readdirSync(here(...parts)).toSorted()

describe('files', () => {
  it('are written with the folders above them, replaced, read and removed', () => {
    const file = here('a', 'b', 'c.txt')
    expect(nodeStore.read(file)).toBeNull()
    nodeStore.write(file, 'one')
    expect([text(nodeStore.read(file)), listOf('a', 'b')]).toEqual(['one', ['c.txt']])
    nodeStore.write(file, Uint8Array.of(116, 119, 111))
    nodeStore.write(here('a', 'b', 'd.txt'), '')
    expect([nodeStore.read(file), listOf('a', 'b')]).toEqual([Uint8Array.of(116, 119, 111), ['c.txt', 'd.txt']])
    nodeStore.remove?.(file)
    expect([nodeStore.read(file), listOf('a', 'b')]).toEqual([null, ['d.txt']])
    // What is not there cannot be removed, which is no error.
    expect(() => nodeStore.remove?.(file)).not.toThrow()
  })

  it('have a name of their own until they are complete', async () => {
    const seen: unknown[][] = []
    const writeFileSync = (...args: Parameters<typeof fs.writeFileSync>): void => void (seen.push(args), fs.writeFileSync(...args))
    const store = await storeWith({ writeFileSync }, 77)
    store.write(here('n'), 'x')
    store.write(here('n'), 'y')
    const flag = { flag: 'wx' }
    expect(seen).toEqual([
      [`${here('n')}.77.0.tmp`, 'x', flag],
      [`${here('n')}.77.1.tmp`, 'y', flag],
    ])
    expect(text(store.read(here('n')))).toBe('y')
    const nameless = await storeWith({ writeFileSync })
    nameless.write(here('n'), 'z')
    expect(seen.at(-1)?.[0]).toBe(`${here('n')}.0.0.tmp`)
  })

  it('that cannot be written whole leave the old one, and nothing else', async () => {
    nodeStore.write(here('full', 'file'), 'old')
    const full = new Error('ENOSPC')
    const half = (name: string): never => {
      fs.writeFileSync(name, 'ha')
      throw full
    }
    const store = await storeWith({ writeFileSync: half })
    expect(() => store.write(here('full', 'file'), 'half')).toThrow(full)
    expect([text(store.read(here('full', 'file'))), listOf('full')]).toEqual(['old', ['file']])
    const unnamed = await storeWith({
      renameSync: () => {
        throw full
      },
    })
    expect(() => unnamed.write(here('full', 'file'), 'new')).toThrow(full)
    expect([text(store.read(here('full', 'file'))), listOf('full')]).toEqual(['old', ['file']])
  })
})

describe('a folder', () => {
  it('is made where one is missing, each once, from the top', async () => {
    const made: string[] = []
    const mkdirSync = (name: string): void => void (made.push(name), fs.mkdirSync(name))
    const store = await storeWith({ mkdirSync })
    for (let i = 0; i < 2; i++) store.write(here('m', 'x', 'y', 'file'), '1')
    store.write(path.relative(folder, here('m', 'x', 'z', 'file')), '2')
    expect(made).toEqual([here('m'), here('m', 'x'), here('m', 'x', 'y'), here('m', 'x', 'z')])
  })

  it('that cannot be made is an error with its reason, and costs no time', async () => {
    fs.writeFileSync(here('plain'), '')
    const cause: unknown = expect.objectContaining({ code: 'EEXIST' })
    expect(() => nodeStore.write(here('plain', 'file'), '')).toThrow(
      expect.objectContaining({ name: 'ArgumentError', message: `the folder ${here('plain')} cannot be made.`, cause }) as Error,
    )
    expect(() => nodeStore.write(here('plain', 'x', 'y'), '')).toThrow(`the folder ${here('plain')} cannot be made.`)
    // Not even the root is a folder.
    const asked: string[] = []
    const nothing = await storeWith({
      statSync: (name: string) => {
        asked.push(name)
        throw new Error('ENOENT')
      },
      mkdirSync: () => {
        throw new Error('EROFS')
      },
    })
    expect(() => nothing.write('/a/b/file', '')).toThrow('the folder / cannot be made.')
    expect(asked).toEqual(['/a/b', '/a', '/', '/'])
  })

  it('may be made by another process in the meantime', async () => {
    const mkdirSync = (name: string): never => {
      fs.mkdirSync(name)
      throw new Error('EEXIST')
    }
    const store = await storeWith({ mkdirSync })
    store.write(here('raced', 'deep', 'file'), 'x')
    expect(text(store.read(here('raced', 'deep', 'file')))).toBe('x')
  })
})

describe('a store', () => {
  it('is in memory where there are no files', async () => {
    for (const missing of ['node:fs', 'node:path']) {
      vi.resetModules()
      const fresh = await import('../../src/debug/files/fileStore.ts')
      vi.stubGlobal('process', { getBuiltinModule: (name: string) => (name === missing ? undefined : {}) })
      expect(fresh.fileStore()).toBeInstanceOf(fresh.MemoryFileStore)
    }
  })

  it('may be another one: the previous one is returned', () => {
    const mine = new MemoryFileStore()
    expect(setFileStore(mine)).toBe(nodeStore)
    expect(fileStore()).toBe(mine)
    expect(setFileStore(nodeStore)).toBe(mine)
  })

  it('reads and writes', () => {
    const methods = { read: () => null, write: () => {} }
    expect(() => checkStore('here', methods)).not.toThrow()
    for (const value of [null, 3, {}, { read: methods.read }, { write: methods.write }, { ...methods, read: 1 }, { ...methods, write: 1 }])
      expect(() => checkStore('here', value)).toThrow(/^here: argument 'store' must be a FileStore, which has the methods read and write, got /)
    expect(() => setFileStore({} as never)).toThrow(/^setFileStore: argument 'store' must be a FileStore/)
    expect(fileStore()).toBe(nodeStore)
    const memory = new MemoryFileStore()
    expect(() => memory.write(3 as never, '')).toThrow("MemoryFileStore.write: argument 'path' must be a string, got 3")
    expect(() => memory.write('a', 3 as never)).toThrow("MemoryFileStore.write: argument 'content' must be a string or a Uint8Array, got 3")
    expect(memory.files.size).toBe(0)
  })

  it('has paths of one slash, but for those of an address', () => {
    expect([joinPath('a', 'b'), joinPath('/a//', '///b/'), joinPath('a'), joinPath('file:///a//', 'b')]).toEqual(['a/b', '/a/b/', 'a', 'file:///a/b'])
  })
})
