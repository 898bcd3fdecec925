// The thread that watches a child process, and the program's side of the child, one by one.
import { closeSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { childEntry, nodeHelper } from '../../src/debug/isolate/nodeHelper.ts'
import { processorTime, watch } from '../../src/debug/isolate/watchdog.ts'

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-helper-'))
process.on('exit', () => removeFolder(folder))

/** Calls `fn` where there is no process object, as in a page. */
function inPage<T>(fn: () => T): T {
  const host = globalThis.process
  Reflect.set(globalThis, 'process', undefined)
  try {
    return fn()
  } finally {
    Reflect.set(globalThis, 'process', host)
  }
}

describe('the thread that watches a child', () => {
  const killed: (readonly unknown[])[] = []
  let parentLives = true
  const parent = process.ppid
  beforeEach(() => {
    killed.length = 0
    parentLives = true
    vi.useFakeTimers()
    vi.spyOn(process, 'kill').mockImplementation((...args: readonly unknown[]) => {
      killed.push(args)
      if (args[1] === 0 && !parentLives) throw new Error('kill ESRCH')
      return true
    })
  })
  afterEach(() => {
    vi.clearAllTimers()
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('writes the processor time of the process five times a second, as long as the parent lives', () => {
    const file = join(folder, 'reports')
    const fd = openSync(file, 'w')
    vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 3000, system: 2500 })
    watch(parent, fd)
    vi.advanceTimersByTime(199)
    expect(readFileSync(file, 'utf8')).toBe('')
    vi.advanceTimersByTime(401)
    const reports = (): string[] =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    expect(reports()).toHaveLength(3)
    expect(reports().every((line) => line.includes('"cpuMs":5.5'))).toBe(true)
    expect(killed).toEqual([
      [parent, 0],
      [parent, 0],
      [parent, 0],
    ])
    parentLives = false
    vi.advanceTimersByTime(200)
    expect(killed.slice(3)).toEqual([
      [parent, 0],
      [process.pid, 'SIGKILL'],
    ])
    expect(reports()).toHaveLength(3)
    closeSync(fd)
  })

  it('ends the process when another one is its parent, and asks nobody', () => {
    watch(parent + 1, null)
    vi.advanceTimersByTime(200)
    expect(killed).toEqual([[process.pid, 'SIGKILL']])
  })

  it('writes nothing without a pipe, and survives one that nobody reads', () => {
    const writes = vi.spyOn(process, 'cpuUsage')
    watch(parent, null)
    vi.advanceTimersByTime(200)
    expect(writes).not.toHaveBeenCalled()
    watch(parent, 999_999)
    vi.advanceTimersByTime(200)
    expect(writes).toHaveBeenCalledTimes(1)
  })

  it('reports nothing where there is no process, or none that tells its time', () => {
    watch(parent, 999_999)
    expect(inPage(processorTime)).toBeNull()
    const { cpuUsage } = process
    Reflect.set(process, 'cpuUsage', undefined)
    try {
      expect(processorTime()).toBeNull()
      vi.advanceTimersByTime(200)
    } finally {
      Reflect.set(process, 'cpuUsage', cpuUsage)
    }
  })
})

describe('the side of the program', () => {
  const entry = childEntry.url
  afterEach(() => {
    childEntry.url = entry
    Reflect.deleteProperty(globalThis, 'Deno')
  })
  const script = (text: string): void => {
    const file = join(folder, `child${Math.trunc(performance.now() * 1000)}.mjs`)
    writeFileSync(file, text)
    childEntry.url = pathToFileURL(file).href
  }
  const deathOf = async (): Promise<string> => {
    const helper = await nodeHelper()?.()
    expect(helper?.announces).toBe(true)
    return new Promise((resolve) => {
      helper?.listen(() => {}, resolve)
    })
  }

  it('says how a child died that never was ready', async () => {
    script("process.kill(process.pid, 'SIGKILL')")
    expect(await deathOf()).toBe('signal SIGKILL')
  })

  it('waits for the first message, and then listens to answers and to reports', async () => {
    const { answerLine, progressLine } = await import('../../src/debug/isolate/pipes.ts')
    const [answer, progress] = [answerLine({ outcome: { status: 'passes' } } as never), progressLine({ cpuMs: 7 })]
    script(`import { writeSync } from 'node:fs'
      setTimeout(() => {
        writeSync(1, ${JSON.stringify(`noise\n${progress}`)})
        process.stdin.once('data', () => { writeSync(3, ${JSON.stringify(progress)}); writeSync(1, ${JSON.stringify(answer)}) })
      }, 50)`)
    const helper = await nodeHelper()?.()
    const heard: unknown[] = []
    const done = new Promise<void>((resolve) => {
      helper?.listen(
        (message) => {
          heard.push(message)
          if (heard.length === 2) resolve()
        },
        () => {},
      )
    })
    helper?.post({} as never)
    await done
    expect(heard).toContainEqual({ cpuMs: 7 })
    expect(JSON.stringify(heard)).toContain('passes')
    helper?.kill()
  })

  it.each(['run', 'env'])('starts nothing where Deno does not allow to %s', (refused) => {
    Reflect.set(globalThis, 'Deno', {
      permissions: { querySync: ({ name }: { name: string }) => ({ state: name === refused ? 'prompt' : 'granted' }) },
    })
    expect(nodeHelper()).toBeNull()
    Reflect.set(globalThis, 'Deno', { permissions: { querySync: () => ({ state: 'granted' }) } })
    expect(nodeHelper()).not.toBeNull()
  })
})
