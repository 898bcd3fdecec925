// `tensorfx repro`: a repro as one file that can be sent, and its run elsewhere.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isSetting } from '../../debug/environment.ts'
import { ArgumentError, TensorfxError } from '../../errors/index.ts'
import { nearest } from '../../protocol/index.ts'
import { readArchive } from './archive.ts'
import type { Archive, Manifest } from './archive.ts'
import { PACKAGE } from './modules.ts'
import { differenceHere, pack } from './pack.ts'

const USAGE = `usage: tensorfx repro pack FILE.mjs [--out FILE.tgz] [--backend ./mine.mjs#mine]
       tensorfx repro run FILE.tgz|FILE.mjs [--dir FOLDER] [words for the script, e.g. minify]
  pack   writes one file with the script, its storages, the backend's modules, versions and settings
  run    unpacks it into a new folder and runs its script with this tensorfx. That runs code: read the script before you run one of a stranger
  --out FILE.tgz      default: the script's name with .tgz, in the working directory
  --backend M#NAME    the backend of a script that has to be told of it
  --dir FOLDER        an empty or new folder to unpack to; default: a new one among the temporary files
The exit code of run is that of the script; 2 if the command is wrong or the archive cannot be read.`

/** Runs the command with the words after `repro`. Returns its exit code. */
export async function runReproCommand(words: readonly string[], print: (line: string) => void = console.log): Promise<number> {
  const [command, ...rest] = words
  if (command === undefined || command === '--help' || command === '-h') {
    print(USAGE)
    return command === undefined ? 2 : 0
  }
  try {
    if (command === 'pack') return await runPack(rest, print)
    if (command === 'run') return await runRun(rest, print)
    const near = nearest(command, ['pack', 'run'])
    throw new ArgumentError(`unknown command '${command}'.${near === null ? '' : ` Did you mean '${near}'?`}`)
  } catch (error) {
    if (!(error instanceof TensorfxError)) throw error
    print(`tensorfx repro: ${error.message}\n${USAGE}`)
    return 2
  }
}

/** Takes an option and its value out of the words. */
function take(words: string[], option: string): string | null {
  const at = words.indexOf(option)
  if (at < 0) return null
  const [, value] = words.splice(at, 2)
  if (value === undefined) throw new ArgumentError(`${option} needs a value.`)
  return value
}

async function runPack(given: readonly string[], print: (line: string) => void): Promise<number> {
  const words = [...given]
  const out = take(words, '--out')
  const backend = take(words, '--backend')
  const [file, ...more] = words
  if (file === undefined || more.length > 0) throw new ArgumentError(`pack takes one script, got ${words.length === 0 ? 'none' : words.join(' ')}.`)
  const { archive, files, missing } = await pack(file, backend)
  const path = out ?? `${(file.split(/[\\/]/).at(-1) ?? 'repro').replace(/\.mjs$/, '')}.tgz`
  writeFileSync(path, archive)
  print(`Wrote ${path}: ${files.length} files, ${archive.length} bytes`)
  for (const name of files) print(`  ${name}`)
  for (const what of missing) print(`Not inside: ${what}.`)
  return 0
}

async function runRun(given: readonly string[], print: (line: string) => void): Promise<number> {
  const [file, ...words] = given
  if (file === undefined) throw new ArgumentError('run takes a file.')
  const dir = take(words, '--dir')
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
    throw new ArgumentError(`the file ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
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

/** Runs a script in a new process. Returns its exit code. */
async function start(script: string, words: readonly string[], execArgv: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const settings = Object.fromEntries(Object.entries(env).filter(([key]) => isSetting(key)))
  const { TENSORFX_REPRO_AFTER: _after, TENSORFX_REPRO_LEVEL: _level, ...usual } = process.env
  const child = spawn(process.execPath, [...execArgv, script, ...words], { stdio: 'inherit', env: { ...usual, ...settings } })
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('exit', (code, signal) => done(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  })
}
