// Observes a program: runs a command with the modules of a project instrumented, and returns which functions called which. Processes and threads that it starts are observed, too.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ArgumentError } from '../../errors/index.ts'

/** That one function was entered from another, and how often. `closure`: it was a local function of it. '' is code at the top of modules, or of others. */
export interface Observed {
  readonly from: string
  readonly to: string
  readonly kind: 'call' | 'closure'
  readonly count: number
}

/** Runs a command in a folder, which it may take at most `seconds`. Returns edges in the order in which they were first taken. Throws ArgumentError if the command fails, or runs nothing of the project. */
export function observe(root: string, command: string, seconds = 300, preloaded = new URL('./preload.js', import.meta.url)): readonly Observed[] {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-flow-'))
  try {
    const preload = new URL(preloaded)
    preload.searchParams.set('root', root)
    preload.searchParams.set('out', join(folder, 'run'))
    const options = `${process.env['NODE_OPTIONS'] ?? ''} --import=${preload.href}`.trim()
    const { status, signal, stderr, error } = spawnSync(command, {
      cwd: root,
      shell: true,
      env: { ...process.env, NODE_OPTIONS: options },
      timeout: seconds * 1000,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    if (error !== undefined || status !== 0)
      throw new ArgumentError(
        `the command '${command}' ${error === undefined ? `ended with ${signal ?? `exit code ${status}`}` : `could not run: ${error.message}`}. ${stderr.trim().split('\n').slice(-12).join('\n')}`,
      )
    const counts = new Map<string, Observed>()
    for (const name of readdirSync(folder).toSorted()) {
      const rows: readonly (readonly [string, string, 'call' | 'closure', number])[] = JSON.parse(readFileSync(join(folder, name), 'utf8'))
      for (const [from, to, kind, count] of rows) {
        const key = JSON.stringify([from, to, kind])
        counts.set(key, { from, to, kind, count: count + (counts.get(key)?.count ?? 0) })
      }
    }
    if (counts.size === 0)
      throw new ArgumentError(`the command '${command}' entered no function of the project. It must run the project's own files in Node.`)
    return [...counts.values()]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
