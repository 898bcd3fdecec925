// The debugger's child processes die with the program that started them, however it ends: a candidate that loops for ever must not keep a core busy for days.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { bundledUrl } from '../../scripts/bundled.mjs'

const work = mkdtempSync(join(tmpdir(), 'tensorfx-orphans-'))
const children: number[] = []
afterAll(() => {
  for (const pid of children) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  removeFolder(work)
})

// Writes the child's process id, then never returns.
const backend = join(work, 'backend.mjs')
writeFileSync(
  backend,
  `import { writeFileSync } from 'node:fs'
   import { registerBackend } from '${bundledUrl('entries/compile.js')}'
   const looping = (gm) => {
     if (process.env.PID_FILE === undefined) return gm
     writeFileSync(process.env.PID_FILE, String(process.pid) + ';')
     for (;;);
   }
   registerBackend('looping', looping, { module: import.meta.url })`,
)

/** A program that hunts with that backend, and runs `ending` when the child loops. */
const program = (ending: string): string => `
  import { existsSync, readFileSync } from 'node:fs'
  import { torch } from '${bundledUrl('index.js')}'
  import { symbolicTrace } from '${bundledUrl('entries/fx.js')}'
  import { minifyBackendFailure } from '${bundledUrl('entries/debug.js')}'
  import '${pathToFileURL(backend).href}'
  const gm = symbolicTrace((x) => [torch.sin(x)])
  void minifyBackendFailure(gm, [torch.ones([2])], { backend: 'looping', timeoutMs: 60_000, print: () => {} })
  const timer = setInterval(() => {
    if (!existsSync(process.env.PID_FILE) || !readFileSync(process.env.PID_FILE, 'utf8').endsWith(';')) return
    clearInterval(timer)
    ${ending}
  }, 10)`

/** A process that nothing waits for stays in the table as a zombie. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const stat = `/proc/${pid}/stat`
  return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, 'utf8'))
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 20) {
    if (waited > 50_000) throw new Error(`${what} did not happen within 50 s`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe('the child of a hunt whose candidate loops for ever dies with its parent', () => {
  it.each([
    ['SIGINT', `process.kill(process.pid, 'SIGINT')`],
    ['SIGTERM', `process.kill(process.pid, 'SIGTERM')`],
    ['SIGKILL', `process.kill(process.pid, 'SIGKILL')`],
    ['process.exit', `process.exit(3)`],
    ['an uncaught error', `throw new Error('the program fails')`],
  ])(
    'that ends by %s',
    async (how, ending) => {
      const pidFile = join(work, `${how.replaceAll(/\W/g, '')}.pid`)
      const parent = spawn(process.execPath, ['--input-type=module', '-e', program(ending)], {
        stdio: 'ignore',
        env: { ...process.env, PID_FILE: pidFile },
      })
      let ended = false
      parent.on('exit', () => (ended = true))
      await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith(';'), 'the start of the child')
      const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10)
      children.push(pid)
      await until(() => ended, 'the end of the parent')
      await until(() => !isAlive(pid), `the end of the child ${pid}`)
      expect(isAlive(pid)).toBe(false)
    },
    180_000,
  )
})
