// Scripts in fresh processes, in folders of their own.
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const distUrl = (path) => pathToFileURL(join(root, 'dist', path)).href

/** A new folder with these files. */
export function folderWith(files) {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-fault-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** Runs a script: { how: 'exit 1' | 'signal SIGKILL' | 'hang', output, ms }. One that has not ended after `ms` is stopped: a hang. */
export function runScript(cwd, script, words = [], { env = {}, ms = 180_000, node = [] } = {}) {
  return new Promise((resolve) => {
    const began = performance.now()
    const child = spawn(process.execPath, [...node, script, ...words], { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let isLate = false
    const take = (text) => void (output += text)
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, ms)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ how: isLate ? 'hang' : signal === null ? `exit ${code}` : `signal ${signal}`, output, ms: performance.now() - began })
    })
  })
}

/** All files of that name in a folder and below, the newest last. */
export const filesNamed = (folder, name) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => basename(path) === name)
    .map((path) => join(folder, path))
    .sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)

/** Copies a script into a new folder, with the storages that it reads beside it; returns the copy's path. */
export function copyElsewhere(script) {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-elsewhere-'))
  const text = readFileSync(script, 'utf8')
  const copy = join(folder, basename(script))
  writeFileSync(copy, text)
  // What it reads from files beside it, at the same places relative to it.
  const saveDir = /saveDir: new URL\('([^']*)'/.exec(text)?.[1]
  if (saveDir !== undefined && text.includes('reader.storage(') && saveDir.startsWith('./')) {
    const from = join(dirname(script), decodeURIComponent(saveDir))
    if (existsSync(from)) cpSync(from, join(folder, decodeURIComponent(saveDir)), { recursive: true })
  }
  return copy
}

/** How much slower this process is than alone on a processor: others may keep it busy beside the load that is meant. */
export function slowness() {
  const [began, used] = [performance.now(), process.cpuUsage()]
  while (performance.now() - began < 500);
  const { user, system } = process.cpuUsage(used)
  return (1000 * (performance.now() - began)) / (user + system)
}
