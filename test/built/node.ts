// Programs that run on the built package, in a process of their own.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))
if (!existsSync(`${root}dist/index.js`)) throw new Error('These tests run on the built package, and there is no dist/. Run `npm run build` first.')

/** Runs a module in Node, in `cwd`, and returns what it printed. Throws with its standard error if it fails. */
export function node(
  code: string,
  { cwd = root, env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): string {
  return execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  }).trim()
}
