// Machine code in processes of their own: a compiler ends with the program, libraries serve the next process, threads run them.
import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { hasCompiler } from '../kernels/c/runC.ts'
import { node, root } from './node.ts'

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

  it.each(['1', '3'])('a second process lowers nothing, emits nothing and compiles nothing, with the same numbers, on %s threads', (threads) => {
    const program = `${started(`{ cache: '${join(work, `kept ${threads}`)}' }`)}
      import { compile } from 'tensorfx'
      const x = torch.linspace(-2, 3, 5000).reshape([50, 100])
      const step = compile((w) => {
        const loss = x.mm(w).tanh().softmax(-1).square().sum()
        loss.backward()
        return loss
      })
      const w = torch.linspace(-1, 1, 3000).reshape([100, 30]).requiresGrad_()
      const first = [step(w).item(), w.grad.sum().item()]
      await ready()
      const { compiled, found, modules, graphs } = stats()
      const both = (made, found) => [made > 0, found > 0].join()
      console.log(both(compiled, found), both(modules.made, modules.found), both(graphs.made, graphs.found), first.join())`
    const env = { TENSORFX_NUM_THREADS: threads, TENSORFX_VERIFY: '' }
    const [first, second] = [node(program, { env }), node(program, { env })]
    expect(first).toMatch(/^64\ntrue,false true,false true,false /)
    expect(second).toBe(first.replaceAll('true,false', 'false,true'))
  })

  it('two processes that compile the same at once both compute, and leave whole libraries', async () => {
    const folder = join(work, 'at once')
    const program = `${started(`{ cache: '${folder}' }`)}
      await ready()
      console.log(stats().kernels.every(({ why }) => why === null), sum())`
    const run = promisify(execFile)
    const both = await Promise.all([1, 2].map(async () => run(process.execPath, ['--input-type=module', '-e', program], { cwd: root })))
    expect(both.map(({ stdout }) => stdout)).toEqual(['64\ntrue 64\n', '64\ntrue 64\n'])
    expect(readdirSync(folder).filter((name) => !/^[0-9a-f]{64}\.(?:so(?:\.sum)?|kept)$/.test(name))).toEqual([])
    expect(node(program.replace('console.log(stats', 'console.log(stats().compiled, stats'))).toBe('64\n0 true 64')
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

  describe('on threads', () => {
    /** `busy` computes until workers run libraries; every loop is divided. */
    const onThreads = `
      import { compile, torch } from './dist/index.js'
      import { init, ready, stats } from './dist/entries/native.js'
      import { poolState } from './dist/kernels/threads/pool.js'
      import { threadCosts } from './dist/kernels/threads/launch.js'
      Object.assign(threadCosts, { awake: 0, asleep: 0, chunk: 0, learns: false })
      await init({ cache: '${join(work, 'threads')}' })
      const f = compile((x) => x.matmul(x.t()).add(1), { options: { emitter: 'c' } })
      const x = torch.ones([300, 301])
      const compute = () => f(x).sum().item()
      const by = () => f.kernels().map(({ computedBy }) => computedBy().engine + computedBy().threads).join()
      const busy = async () => {
        compute()
        await ready()
        while (poolState.chunksByWorkers === 0 || !by().includes('c3')) { compute(); await new Promise((resolve) => setTimeout(resolve, 2)) }
      }`
    const env = { TENSORFX_NUM_THREADS: '3' }
    const result = 300 * 300 * 302

    it('a process ends by itself, and a second one finds the libraries of its kernels and their parts', () => {
      const program = `${onThreads}
        await busy()
        console.log(compute(), stats().compiled > 1, stats().found > 1)`
      expect(node(program, { env })).toBe(`${result} true false`)
      expect(node(program, { env })).toBe(`${result} false true`)
    })

    it('a process ends by process.exit while workers compute', () => {
      const program = `${onThreads}
        await busy()
        let chunks = 0
        const now = performance.now.bind(performance)
        performance.now = () => { if (chunks++ > 20) { console.log('out'); process.exit(0) } return now() }
        for (;;) compute()`
      expect(node(program, { env })).toBe('out')
    })

    it('no thread takes time three seconds after the last call', () => {
      const program = `${onThreads}
        await busy()
        await new Promise((resolve) => setTimeout(resolve, 3000))
        const before = process.cpuUsage()
        await new Promise((resolve) => setTimeout(resolve, 1000))
        const { user, system } = process.cpuUsage(before)
        console.log((user + system) / 1000 < 50)`
      expect(node(program, { env })).toBe('true')
    })

    it('a process that was forked has threads and libraries of its own', () => {
      const file = join(work, 'forks.mjs')
      const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
      writeFileSync(
        file,
        `${onThreads.replaceAll('./dist/', dist)}
        import { fork } from 'node:child_process'
        await busy()
        if (process.env.CHILD === undefined)
          fork(process.argv[1], { env: { ...process.env, CHILD: '1' } }).on('exit', (code) => console.log('child', code, compute()))
        else console.log(compute())`,
      )
      expect(
        node(
          `import { spawnSync } from 'node:child_process'; console.log(spawnSync(process.execPath, ['${file}'], { encoding: 'utf8' }).stdout.trim())`,
          { env },
        ),
      ).toBe(`${result}\nchild 0 ${result}`)
    })
  })
})
