// Runs before an observed program (`node --import`): instruments the modules of the project as they are loaded, and writes which function called which when the program ends. Its
// address has the root of the project and the file to write.
import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdirSync, writeFileSync } from 'node:fs'
import Module, { register } from 'node:module'
import { dirname } from 'node:path'
import { threadId } from 'node:worker_threads'
import { isFunction } from '../../protocol/index.ts'
import { RECORDER, instrument } from './instrument.ts'
import { sourceOf } from './sourceOf.ts'

const { searchParams } = new URL(import.meta.url)
const root = searchParams.get('root') ?? ''
const out = searchParams.get('out') ?? ''

/** A function that runs: its id, and what ran before it was entered or went on. */
interface Frame {
  readonly id: string
  before: Frame | undefined
  /** Whether another generator yields for it (`yield*`): that one leaves for both. */
  delegates: boolean
}

const current = new AsyncLocalStorage<Frame | undefined>()
const edges = new Map<string, number>()

/** Notes that a function was entered. */
function note(from: string, to: string, kind: 'call' | 'closure'): void {
  const key = JSON.stringify([from, to, kind])
  edges.set(key, (edges.get(key) ?? 0) + 1)
}

function enter(id: string, kind: 'call' | 'closure'): Frame {
  const before = current.getStore()
  if (kind === 'call' || before?.id !== id) note(before?.id ?? '', id, kind)
  const frame = { id, before, delegates: false }
  current.enterWith(frame)
  return frame
}

const recorder = {
  enter: (id: string): Frame => enter(id, 'call'),
  /** A local function of it. */
  within: (id: string): Frame => enter(id, 'closure'),
  exit: (frame: Frame): void => current.enterWith(frame.before),
  /** It waits: whatever ran before goes on. */
  leave<T>(frame: Frame, value?: T): T | undefined {
    let { before } = frame
    while (before?.delegates === true) before = before.before
    current.enterWith(before)
    return value
  },
  /** Another generator goes on for it, which it enters; other iterables have no functions to enter. */
  delegate<T>(frame: Frame, value: T): T {
    if (!Object.prototype.toString.call(value).endsWith('Generator]')) recorder.leave(frame)
    else frame.delegates = true
    return value
  },
  /** It goes on. */
  back<T>(frame: Frame, value?: T): T | undefined {
    frame.delegates = false
    frame.before = current.getStore() === frame ? frame.before : current.getStore()
    current.enterWith(frame)
    return value
  },
}
Object.defineProperty(globalThis, RECORDER, { value: recorder })

/** What a program did, as it is written. */
process.on('exit', () => {
  mkdirSync(dirname(out), { recursive: true })
  const rows = [...edges].map(([key, count]) => {
    const edge: readonly unknown[] = JSON.parse(key)
    return [...edge, count]
  })
  writeFileSync(`${out}.${process.pid}.${threadId}.json`, JSON.stringify(rows))
})

register(`./hooks.js?root=${encodeURIComponent(root)}`, import.meta.url)

// CommonJS is compiled in this thread.
const compile: unknown = Reflect.get(Module.prototype, '_compile')
if (isFunction(compile))
  Reflect.set(Module.prototype, '_compile', function (this: unknown, code: string, path: string, ...rest: unknown[]): unknown {
    const source = sourceOf(root, path, code)
    return Reflect.apply(compile, this, [source === null ? code : (instrument(code, source, 'script') ?? code), path, ...rest])
  })
