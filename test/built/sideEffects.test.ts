// Importing a module of the built package only defines things, unless package.json lists it under `sideEffects`: bundlers drop every other module of which
// nothing is used.
import { readFileSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { node, root } from './node.ts'

const { sideEffects } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { readonly sideEffects: readonly string[] }
const patterns = sideEffects.map((glob) => new RegExp(`^${glob.replace('./', '').replaceAll('.', '\\.').replace('**/*', '.*')}$`))
const isListed = (file: string): boolean => patterns.some((pattern) => pattern.test(file))
const files = readdirSync(`${root}dist`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.js'))
  .map((name) => `dist/${name}`)

describe('package.json', () => {
  it('lists modules that exist', () => {
    expect(patterns.filter((pattern) => !files.some((file) => pattern.test(file)))).toEqual([])
  })

  it('lists every module that another one imports for its effects only', () => {
    const bare = files.flatMap((file) =>
      [...readFileSync(root + file, 'utf8').matchAll(/^import '(\.[^']*)';/gm)].map((match) => [
        file,
        posix.join(posix.dirname(file), match[1] ?? ''),
      ]),
    )
    expect(bare.filter(([file = '', target = '']) => !isListed(target) || !(isListed(file) || file.startsWith('dist/install/')))).toEqual([])
  })
})

describe('modules that are not listed', () => {
  /** Imports them all in one process, and prints what is different then: prototypes, globals, backends, listeners. Declaring operators is an effect of dist/ops, which is listed. */
  const program = (modules: readonly string[]): string => `
    import { Tensor } from './dist/tensor/tensor.js'
    import { listBackends } from './dist/dynamo/index.js'
    import { allOps } from './dist/ops/index.js'
    const objects = { Tensor, prototype: Tensor.prototype, globalThis, Object, Array, Function: Function.prototype, ArrayPrototype: Array.prototype,
      ObjectPrototype: Object.prototype, Promise: Promise.prototype, console, process }
    const state = () => [
      ...Object.entries(objects).flatMap(([name, object]) => Reflect.ownKeys(object).map((key) => name + '.' + String(key))),
      ...listBackends().map((name) => 'backend ' + name),
      ...allOps().map((op) => 'operator ' + op.qualname),
      ...process.eventNames().map((name) => 'listener of ' + String(name)),
    ]
    const before = new Set(state())
    const modules = ${JSON.stringify(modules)}
    for (const name of modules) await import('./' + name)
    console.log(JSON.stringify(state().filter((fact) => !before.has(fact))))
    process.exit()`

  it('change nothing when they are imported', () => {
    // The front door itself only names what listed modules put together.
    const modules = files.filter((file) => !isListed(file) && file !== 'dist/index.js')
    expect(modules.length).toBeGreaterThan(200)
    expect(JSON.parse(node(program(modules)))).toEqual([])
  })

  it('would be found: the front door gives tensors their methods', () => {
    expect(JSON.parse(node(program(['dist/index.js'])))).toContain('prototype.backward')
  })
})

describe('an environment that may not be read', () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { readonly exports: Readonly<Record<string, unknown>> }
  // To import native/register is to ask for machine code: it starts the C compiler, which gets the environment.
  const entries = Object.keys(exports).filter((name) => name !== './package.json' && name !== './native/register')
  const refusing =
    "new Proxy({ ...process.env }, { get(env, name) { if (String(name).startsWith('TENSORFX')) throw new Error('NotCapable'); return env[name] } })"
  const refuse = `Object.defineProperty(process, 'env', { value: ${refusing} })`

  it.each([
    ['reading it is refused, as in Deno without --allow-env', refuse],
    ['there is no process, as in a browser', 'globalThis.process = undefined'],
    [
      'Deno would ask the user, so nothing is read',
      `globalThis.asked = []
       Object.defineProperty(process, 'env', { value: new Proxy(process.env, { get: (env, name) => (String(name).startsWith('TENSORFX') && asked.push(name), env[name]) }) })
       const fs = process.getBuiltinModule('node:fs')
       const { readFileSync } = fs
       fs.readFileSync = (path, ...options) => (String(path).includes('eval') && asked.push(path), readFileSync(path, ...options))
       globalThis.Deno = { permissions: { querySync: () => ({ state: 'prompt' }) } }`,
    ],
  ])('hinders neither the import of any entry nor tracing, printing, passes and compile: %s', (_, prepare) => {
    const code = `${prepare}
      for (const name of ${JSON.stringify(entries)}) await import(name.replace('.', 'tensorfx'))
      const { compile, config, fx, torch } = await import('tensorfx')
      const { mergeAttributeReads } = await import('tensorfx/fx/passes')
      const { runPasses } = await import('./dist/pipeline/index.js')
      const gm = fx.symbolicTrace((x) => torch.relu(x))
      runPasses([mergeAttributeReads], gm)
      try {
        fx.symbolicTrace((x) => x.item())
      } catch (error) {
        if (error.code !== 'TFX_TRACE') throw error
      }
      console.log(torch.ones([2]).add(1).sum().item(), config.reproAfter, gm.code.includes('torch.relu(x)'), compile(gm)(torch.ones([1])).item(), globalThis.asked?.length ?? 0)`
    expect(node(code)).toBe('4 null true 1 0')
  })

  it('would be found: a read that is not guarded throws', () => {
    expect(() => node(`${refuse}\nconsole.log(process.env.TENSORFX_VERIFY)`)).toThrow('NotCapable')
  })

  it('is read where it may be, and a wrong value names the variable', () => {
    const code = `import { config } from 'tensorfx'
      console.log(config.reproAfter, config.reproLevel, config.suppressErrors)`
    expect(node(code, { env: { TENSORFX_REPRO_AFTER: 'aot', TENSORFX_REPRO_LEVEL: '4', TENSORFX_SUPPRESS_ERRORS: '1' } })).toBe('aot 4 true')
    expect(() => node(code, { env: { TENSORFX_REPRO_LEVEL: 'high' } })).toThrow(
      'TENSORFX_REPRO_LEVEL=high: config.reproLevel must be 1, 2, 3 or 4, got NaN.',
    )
  })
})
