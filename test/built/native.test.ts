// Machine code in processes of their own: a compiler ends with the program, libraries serve the next process, threads and machine code exclude each other.
import { chmodSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { hasCompiler } from '../kernels/c/runC.ts'
import { node } from './node.ts'

const work = mkdtempSync(join(tmpdir(), 'tensorfx-native-built-'))
afterAll(() => removeFolder(work))

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

/** A compiler that answers what it is, and then starts a program that takes a minute: it leaves that one's process id in a file. */
function slowCompiler(): { readonly command: string; readonly pidFile: string } {
  const [command, pidFile] = [join(work, 'slow-cc'), join(work, 'pid')]
  writeFileSync(command, `#!/bin/sh\ncase "$*" in *-dM*) exec cc "$@";; esac\nsleep 60 &\necho $! > ${pidFile}\nwait\n`)
  chmodSync(command, 0o755)
  return { command, pidFile }
}

const started = (options: string): string => `
  import { torch } from 'tensorfx'
  import { init, ready, stats } from 'tensorfx/native'
  await init(${options})
  const a = torch.ones([64, 64])
  const sum = () => a.mm(a).softmax(-1).sum().item()
  console.log(sum())`

describe.skipIf(!hasCompiler)(`machine code${hasCompiler ? '' : ': skipped, there is no C compiler'}`, () => {
  it.each([
    ['process.exit', 'process.exit(0)'],
    ['its own end', ''],
  ])('a program ends by %s while the compiler works, and what that started ends too', (_, end) => {
    const { command, pidFile } = slowCompiler()
    const start = performance.now()
    const printed = node(
      `${started(`{ cache: false, compiler: '${command}' }`)}
      await new Promise((done) => setTimeout(done, 300))
      console.log(stats().pending > 0)
      ${end}`,
      { env: { TMPDIR: work } },
    )
    expect(printed).toBe('64\ntrue')
    expect(performance.now() - start).toBeLessThan(20_000)
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(pid).toBeGreaterThan(0)
    expect(isAlive(pid)).toBe(false)
    expect(readdirSync(work).filter((name) => name.startsWith('tensorfx-native-'))).toEqual([])
  })

  it('a second process compiles nothing', () => {
    const program = `${started(`{ cache: '${join(work, 'kept')}' }`)}
      await ready()
      console.log(stats().compiled > 0, stats().found > 0, sum())`
    expect(node(program)).toBe('64\ntrue false 64')
    expect(node(program)).toBe('64\nfalse true 64')
  })

  it('is refused where several threads compute', () => {
    const program = `
      import { init } from 'tensorfx/native'
      console.log(await init().catch((error) => error.message))`
    expect(node(program, { env: { TENSORFX_NUM_THREADS: '2' } })).toContain('compiled code runs on one thread')
  })
})
