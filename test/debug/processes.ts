// Programs that fail, the scripts that the debugger writes for them, and those scripts in fresh processes. All run on the built package, as a user's programs do.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

export { bundledUrl as distUrl } from '../../scripts/bundled.mjs'
export { runScript } from '../../scripts/faults/processes.mjs'
export type { Ended } from '../../scripts/faults/processes.mjs'

/** A new folder with these files. */
export function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-run-'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** The only file of that name in a folder and below; null if there is none. */
export function fileNamed(folder: string, name: string): string | null {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => basename(path) === name)
  if (found.length > 1) throw new Error(`there are ${found.length} files ${name} in ${folder}`)
  return found[0] === undefined ? null : join(folder, found[0])
}

export const launcherIn = (folder: string): string | null => fileNamed(folder, 'minifier_launcher.mjs')

/** What a script of the debugger holds. */
export interface Script {
  /** The operators that its graph calls. */
  readonly operators: readonly string[]
  /** The number of elements of its inputs. */
  readonly elements: number
  /** Placeholders, operators and the output. */
  readonly nodes: number
}

export function readRepro(path: string): Script {
  if (!existsSync(path)) throw new Error(`there is no ${path}`)
  const text = readFileSync(path, 'utf8')
  const [forward = '', load = ''] = text.split('function loadArgs')
  const operators = [...forward.matchAll(/= torch\.(?:nn\.functional\.)?(?:ops\.\w+\.)?(\w+)\(/g)].map((match) => match[1] ?? '')
  const inputs = [...load.matchAll(/reader\.tensor\(\w+, \[([^\]]*)\]/g)].map((match) =>
    (match[1] ?? '').split(',').reduce((n, size) => n * Number(size || 1), 1),
  )
  return { operators, elements: inputs.reduce((a, b) => a + b, 0), nodes: operators.length + inputs.length + 1 }
}
