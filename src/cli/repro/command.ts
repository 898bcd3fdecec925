// `tensorfx repro`: a repro as one file that can be sent, and its run elsewhere.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isSetting } from '../../debug/script/environment.ts'
import { ArgumentError, messageOf } from '../../errors/index.ts'
import type { Line, Result } from '../line.ts'
import { readArchive } from './archive.ts'
import type { Archive, Manifest } from './archive.ts'
import { PACKAGE } from './modules.ts'
import { differenceHere, pack } from './pack.ts'

/** Runs `tensorfx repro pack`. */
export async function packRepro({ operands, options }: Line): Promise<Result> {
  const [file, ...more] = operands
  if (file === undefined || more.length > 0)
    throw new ArgumentError(`pack takes one script, got ${operands.length === 0 ? 'none' : operands.join(' ')}.`)
  const { archive, files, missing } = await pack(file, options.get('--backend') ?? null)
  const path = options.get('--out') ?? `${(file.split(/[\\/]/).at(-1) ?? 'repro').replace(/\.mjs$/, '')}.tgz`
  writeFileSync(path, archive)
  const text = [
    `Wrote ${path}: ${files.length} files, ${archive.length} bytes`,
    ...files.map((name) => `  ${name}`),
    ...missing.map((what) => `Not inside: ${what}.`),
  ].join('\n')
  return { text, code: 0, data: { path, bytes: archive.length, files, missing } }
}

/** Runs `tensorfx repro run`: other words are for the script. */
export async function runRepro({ operands, options }: Line, print: (line: string) => void): Promise<Result> {
  const [file, ...words] = operands
  if (file === undefined) throw new ArgumentError('run takes a file.')
  const dir = options.get('--dir') ?? null
  if (file.endsWith('.mjs')) return start(resolve(file), words, [], {})
  const archive = await readArchive(read(file))
  const folder = unpack(archive, dir)
  const { manifest } = archive
  print(`Unpacked ${archive.files.size} files to ${folder}`)
  const difference = differenceHere(manifest)
  if (difference !== null) print(`Note that ${difference}.`)
  for (const what of manifest.missing) print(`Not inside: ${what}.`)
  const { kept, left } = flags(manifest)
  if (left.length > 0) print(`Not passed to Node: ${left.join(' ')}`)
  return start(join(folder, manifest.script), words, kept, manifest.written?.env ?? {})
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new ArgumentError(`the file ${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

/** Writes the files of an archive into a folder, in which `tensorfx` is this package. Returns the folder. */
function unpack({ files }: Archive, dir: string | null): string {
  const folder = dir === null ? mkdtempSync(join(tmpdir(), 'tensorfx-repro-')) : resolve(dir)
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new ArgumentError(`the folder ${folder} is not empty; name a new one with --dir.`)
  for (const [path, bytes] of files) {
    const target = join(folder, path)
    mkdirSync(dirname(target), { recursive: true })
    // Never through a link or over a file that is there.
    writeFileSync(target, bytes, { flag: 'wx' })
  }
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(PACKAGE, join(folder, 'node_modules', 'tensorfx'), 'junction')
  return folder
}

/** Flags of Node that change limits and the engine; those that load code or listen are not taken from a file. */
function flags({ written }: Manifest): { readonly kept: readonly string[]; readonly left: readonly string[] } {
  const all = written?.execArgv ?? []
  const kept = all.filter((flag) =>
    /^--(max|min|stack|semi|heap|jitless|no-|wasm|turbo|sparkplug|harmony|single-threaded|predictable)[\w-]*(=[\w.]+)?$/.test(flag),
  )
  return { kept, left: all.filter((flag) => !kept.includes(flag)) }
}

/** Runs a script in a new process. Returns its exit code, when it has ended. */
async function start(script: string, words: readonly string[], execArgv: readonly string[], env: Readonly<Record<string, string>>): Promise<Result> {
  const settings = Object.fromEntries(Object.entries(env).filter(([key]) => isSetting(key)))
  const { TENSORFX_REPRO_AFTER: _after, TENSORFX_REPRO_LEVEL: _level, ...usual } = process.env
  const child = spawn(process.execPath, [...execArgv, script, ...words], { stdio: 'inherit', env: { ...usual, ...settings } })
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('exit', (code, signal) => done({ text: '', code: signal === null ? (code ?? 1) : 128 + constants.signals[signal] }))
  })
}
