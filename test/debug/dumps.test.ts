// A dump that cannot be written never hides the failure that it was for, and leaves no part of a file.
import fs, { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, minifyBackendFailure, setFileStore, setLogSink } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { temporaryFolder } from '../helpers/folder.ts'
import { resetConfig } from './inProcess.ts'

const work = temporaryFolder('tensorfx-dumps-')
const nodeStore = fileStore()
const warnings: string[] = []
beforeEach(() => {
  warnings.length = 0
  setLogSink((level, message) => void (level === 'warning' && warnings.push(message)))
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

/** A disk with room for so many files. */
class FullDisk extends MemoryFileStore {
  #room: number
  constructor(room: number) {
    super()
    this.#room = room
  }
  override write(path: string, content: string | Uint8Array): void {
    if (this.#room-- <= 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    super.write(path, content)
  }
}

/** More than a script holds itself. */
const x = torch.linspace(-1, 1, 2000)
const failing = (): unknown => compile((t: Tensor) => torch.relu(torch.sin(t)).add(1), { backend: 'relu_compile_error_TESTING_ONLY' })(x)

function thrownBy(run: () => unknown): Error & Record<string, unknown> {
  try {
    run()
  } catch (error) {
    return error as Error & Record<string, unknown>
  }
  throw new Error('nothing was thrown')
}

describe('when the disk is full', () => {
  it.each([1, 2, 3])('the error of the backend is thrown, and says that there is no script (level %d)', (reproLevel) => {
    const disk = new FullDisk(0)
    setFileStore(disk)
    Object.assign(config, { reproAfter: 'dynamo', reproLevel })
    const error = thrownBy(failing)
    expect(error.name).toBe('BackendCompilerFailed')
    expect(error.message).toContain('relu found in graph')
    expect(error.message).toContain('could not be written: Error: ENOSPC: no space left on device, write')
    expect(warnings.join('\n')).toContain('ENOSPC')
    expect([...disk.files.keys()]).toEqual([])
  })

  it('what was written before it was full is removed', () => {
    for (const room of [1, 2]) {
      const disk = new FullDisk(room)
      setFileStore(disk)
      Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2 })
      const error = thrownBy(failing)
      // A storage and the script.
      expect(error['minifierPath'] === null).toBe(room < 2)
      expect(disk.files.size).toBe(room < 2 ? 0 : 2)
    }
  })

  it('level 4 still reports wrong numbers', () => {
    setFileStore(new FullDisk(0))
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 4 })
    const wrong = compile((t: Tensor) => torch.relu(t), { backend: 'relu_accuracy_error_TESTING_ONLY' })
    const error = thrownBy(() => wrong(x))
    expect(error.message).toMatch(/Bad accuracy detected.*\nThe script .* could not be written: Error: ENOSPC/s)
  })

  it('the minifier finds the smallest graph all the same', async () => {
    setFileStore(new FullDisk(0))
    const gm = symbolicTrace((t: Tensor) => [torch.cos(torch.relu(torch.sin(t)))])
    const options = { backend: 'relu_compile_error_TESTING_ONLY', isolate: false, runDir: 'run', print: () => {} }
    const small = await minifyBackendFailure(gm, [x], options)
    expect([small.gm.graph.nodes.length, small.path]).toEqual([3, null])
    expect(warnings).toEqual(['No more checkpoints are written: Error: ENOSPC: no space left on device, write'])
  })
})

it('an error that cannot be changed is the cause as it is', () => {
  setFileStore(new MemoryFileStore())
  Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2 })
  const frozen = Object.freeze(new Error('frozen error'))
  const run = compile((t: Tensor) => torch.sin(t), {
    backend: () => {
      throw frozen
    },
  })
  expect(thrownBy(() => run(x)).cause).toBe(frozen)
})

describe('the files of a program in Node', () => {
  it('are written under another name first: where the name is taken by a folder, nothing is left', () => {
    const folder = join(work, 'taken')
    mkdirSync(join(folder, 'repro.mjs', 'inside'), { recursive: true })
    expect(() => nodeStore.write(join(folder, 'repro.mjs'), 'text')).toThrow()
    expect(readdirSync(folder)).toEqual(['repro.mjs'])
  })

  it('are written under a name that no other process uses, and no other write', () => {
    const names: unknown[] = []
    const spy = vi.spyOn(fs, 'writeFileSync').mockImplementation((path) => {
      names.push(path)
      throw new Error('full')
    })
    const file = join(work, 'unfinished')
    for (let i = 0; i < 2; i++) expect(() => nodeStore.write(file, 'text')).toThrow('full')
    spy.mockRestore()
    expect(names.map((name) => String(name).replace(/\d+\.tmp$/, 'N.tmp'))).toEqual([`${file}.${process.pid}.N.tmp`, `${file}.${process.pid}.N.tmp`])
    expect(new Set(names).size).toBe(2)
  })

  it('replace old ones, and are removed, if they are there', () => {
    const file = join(work, 'a/b/file')
    nodeStore.write(file, 'a long first text')
    nodeStore.write(file, 'short')
    expect(readFileSync(file, 'utf8')).toBe('short')
    expect(readdirSync(join(work, 'a/b'))).toEqual(['file'])
    nodeStore.remove?.(file)
    nodeStore.remove?.(file)
    expect(existsSync(file)).toBe(false)
  })

  it('whose folder cannot be made are reported beside the error', () => {
    const file = join(work, 'no-folder')
    writeFileSync(file, '')
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2, debugDirRoot: join(file, 'below') })
    const error = thrownBy(failing)
    expect(error.message).toContain('relu found in graph')
    expect(error.message).toMatch(/could not be written: ArgumentError: the folder \S*no-folder cannot be made\.\ncaused by Error: (ENOTDIR|EEXIST)/)
  })

  it('are never looked for without end: a folder that cannot be made is an error that names it', () => {
    const at = (name: string): string => join(work, name)
    writeFileSync(at('file'), '')
    symlinkSync(at('nothing-here'), at('dangling'))
    symlinkSync(at('loop'), at('loop'))
    // Node's recursive mkdir does not return for those below /proc.
    const impossible = [
      at('file/a/b'),
      at('dangling/a'),
      at('loop/a'),
      at('n'.repeat(300)),
      '/dev/null/x',
      ...(existsSync('/proc/self') ? ['/proc/x/y', '/proc/self/x/y'] : []),
    ]
    for (const folder of impossible) {
      expect(() => nodeStore.write(join(folder, 'file'), 'text'), folder).toThrow(/^the folder \S+ cannot be made\.$/)
      Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2, debugDirRoot: folder })
      const error = thrownBy(failing)
      expect(error.message).toContain('relu found in graph')
      expect(error.message).toContain(`could not be written: ArgumentError: the folder ${folder.slice(0, 7)}`)
    }
  })

  it('may be in a folder that another process makes at the same time', () => {
    const { mkdirSync: real } = fs
    const spy = vi.spyOn(fs, 'mkdirSync').mockImplementation((path, options) => {
      real(path, options)
      throw new Error('EEXIST')
    })
    nodeStore.write(join(work, 'raced/deep/file'), 'text')
    spy.mockRestore()
    expect(readFileSync(join(work, 'raced/deep/file'), 'utf8')).toBe('text')
  })
})
