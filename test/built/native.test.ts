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

  it('comes without a change of the program by --import, and computes from the first call on where the environment asks for C', () => {
    const program = `
      import { torch, compile } from 'tensorfx'
      const f = compile((a) => a.mm(a).sum())
      const warnings = []
      console.warn = (text) => void warnings.push(text)
      console.log(f(torch.ones([64, 64])).item(), [...new Set(f.kernels().map(({ computedBy }) => computedBy().engine))].join(), ...warnings)`
    const registered = { NODE_OPTIONS: '--import tensorfx/native/register' }
    const env = { TENSORFX_CACHE_DIR: join(work, 'kept'), TENSORFX_RELAXED: '0' }
    expect(node(program, { env: { ...env, ...registered, TENSORFX_EMITTER: 'c' } })).toBe('262144 c')
    expect(node(program, { env: { ...env, ...registered, TENSORFX_EMITTER: 'wasm' } })).toBe('262144 wasm')
    expect(node(program, { env: { ...env, TENSORFX_EMITTER: 'c' } })).toMatch(/^262144 wasm .*TENSORFX_EMITTER is c, but WebAssembly computes/)
  })

  it.each([
    ['absent', `Object.assign(new Error("Cannot find package 'koffi'"), { code: 'ERR_MODULE_NOT_FOUND' })`],
    ['of another version of Node', `new Error('The module was compiled against a different Node.js version')`],
  ])('says what is missing where koffi is %s, and the program goes on', (_, error) => {
    const hooks = `export function resolve(name, context, next) { if (name === 'koffi') throw ${error}; return next(name, context) }`
    const program = `
      import { register } from 'node:module'
      register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)})
      const { init } = await import('tensorfx/native')
      const { torch } = await import('tensorfx')
      const message = await init().then(() => 'no error', (error) => error.name + ': ' + error.message + ' ' + error.cause.message)
      console.log(message, torch.ones([2]).sum().item())`
    expect(node(program)).toMatch(/^UnsupportedError: native.init: .*npm install koffi.* (?:Cannot find|The module).* 2$/)
  })

  it('is refused where several threads compute', () => {
    const program = `
      import { init } from 'tensorfx/native'
      console.log(await init().catch((error) => error.message))`
    expect(node(program, { env: { TENSORFX_NUM_THREADS: '2' } })).toContain('compiled code runs on one thread')
  })
})
