// The stream itself: who gets which events, in which order, and what a listener cannot do to the program.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { eventKinds, onEvent, setLogSink } from 'tensorfx/debug'
import type { CompileEvent, EventBody, Remover } from 'tensorfx/debug'
import { currentScope, emit, enterScope, eventState, inScope, leaveScope, wants } from '../../src/events/index.ts'

const aBreak: EventBody = { kind: 'break', code: 'read', reason: 'x', stack: [] }
const aLimit: EventBody = { kind: 'limit', what: 'async', name: 'f', reason: 'y' }
const aLaunch: EventBody = {
  kind: 'launch',
  engine: 'wasm',
  threads: 1,
  program: 'p',
  kernel: 'k',
  type: 'loops',
  origins: [],
  flops: 0,
  bytes: 0,
  milliseconds: 1,
}

let removers: Remover[] = []
const messages: string[] = []
const listen = (...given: Parameters<typeof onEvent>): Remover => {
  const remove = onEvent(...given)
  removers.push(remove)
  return remove
}
afterEach(() => {
  for (const remove of removers) remove()
  removers = []
  messages.length = 0
  setLogSink(null)
})
const hear = (): void => void setLogSink((level, message) => messages.push(`${level}: ${message}`))

describe('listeners', () => {
  it('get the kinds that they name, in order, with ids that grow', () => {
    const got: CompileEvent[] = []
    listen((event) => got.push(event), { kinds: ['break'] })
    emit(aBreak)
    emit(aLimit)
    emit(aBreak)
    expect(got.map((event) => event.kind)).toEqual(['break', 'break'])
    const [first, second] = got
    expect(second?.id).toBe((first?.id ?? 0) + 1)
    expect(second?.time).toBeGreaterThanOrEqual(first?.time ?? Infinity)
    expect(second?.run).toBe(first?.run)
    expect(first).toMatchObject({ ...aBreak, fn: null, call: null, graph: null })
  })

  it('get all kinds by default but those that occur for every operator and kernel', () => {
    const got: string[] = []
    listen((event) => got.push(event.kind))
    for (const event of [aBreak, aLaunch, aLimit]) emit(event)
    expect(got).toEqual(['break', 'limit'])
    expect(eventKinds.filter((kind) => !wants(kind))).toEqual(['record', 'launch'])
  })

  it('can be several, each removed alone; the stream is off when the last one is gone', () => {
    expect(eventState.on).toBe(false)
    const got: string[] = []
    const a = listen(() => got.push('a'), { kinds: ['break'] })
    const b = listen(() => got.push('b'), { kinds: ['break', 'limit'] })
    emit(aBreak)
    a()
    a()
    expect(wants('break')).toBe(true)
    emit(aBreak)
    b()
    expect(eventState.on).toBe(false)
    expect(wants('break')).toBe(false)
    emit(aBreak)
    expect(got).toEqual(['a', 'b', 'b'])
  })

  it('registered twice hear twice, and are removed once each', () => {
    let count = 0
    const listener = (): number => count++
    const first = listen(listener, { kinds: ['limit'] })
    listen(listener, { kinds: ['limit'] })
    emit(aLimit)
    expect(count).toBe(2)
    first()
    emit(aLimit)
    expect(count).toBe(3)
  })

  it('end with the block that `using` is in', () => {
    const dispose = (remove: Remover): void => remove[Symbol.dispose]()
    dispose(listen(() => undefined, { kinds: ['break'] }))
    expect(eventState.on).toBe(false)
  })

  it('that throw, or reject, are reported once and hide nothing from the others', async () => {
    hear()
    const got: string[] = []
    listen(
      () => {
        throw new Error('mine')
      },
      { kinds: ['break'] },
    )
    listen(() => got.push('other'), { kinds: ['break'] })
    listen(async () => Promise.reject(new Error('later')), { kinds: ['break'] })
    emit(aBreak)
    emit(aBreak)
    await new Promise((resolve) => setTimeout(resolve))
    expect(got).toEqual(['other', 'other'])
    expect(messages.map((m) => m.replace(/;.*shown\./, ':'))).toEqual([
      'error: A listener of events has thrown: Error: mine',
      'error: A listener of events has thrown: Error: later',
    ])
  })

  it('that throw are reported on the console if the log cannot be written', () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    setLogSink(() => {
      throw new Error('no sink')
    })
    listen(
      () => {
        throw Object.create(null)
      },
      { kinds: ['break'] },
    )
    emit(aBreak)
    expect(written.mock.calls).toEqual([[expect.stringContaining('A listener of events has thrown')]])
    written.mockRestore()
  })

  it('do not hear what they cause themselves, but others do', () => {
    const got: string[] = []
    listen(
      (event) => {
        got.push(`a ${event.kind}`)
        emit(aLimit)
      },
      { kinds: ['break', 'limit'] },
    )
    listen((event) => got.push(`b ${event.kind}`), { kinds: ['limit'] })
    emit(aBreak)
    expect(got).toEqual(['a break', 'b limit'])
    got.length = 0
    emit(aBreak)
    expect(got).toEqual(['a break', 'b limit'])
  })

  it('cannot change an event', () => {
    hear()
    listen((event) => Object.assign(event, { reason: 'changed' }), { kinds: ['break'] })
    const got: unknown[] = []
    listen((event) => got.push('reason' in event ? event.reason : null), { kinds: ['break'] })
    emit(aBreak)
    expect(got).toEqual(['x'])
    expect(messages).toHaveLength(1)
  })
})

describe('arguments', () => {
  it('an unknown kind is an error with the nearest one', () => {
    const absurd = (kinds: unknown): unknown => Reflect.apply(onEvent, undefined, [() => undefined, { kinds }])
    expect(() => absurd(['breaks'])).toThrow(/no events of kind 'breaks'\. Did you mean 'break'\? Known are call, guard/)
    expect(() => absurd([Symbol('x')])).toThrow(ArgumentError)
    expect(() => absurd(['toString'])).toThrow(/no events of kind 'toString'/)
    expect(() => absurd('break')).toThrow(/'options.kinds' must be an array/)
    expect(() => Reflect.apply(onEvent, undefined, [3])).toThrow(/'listener' must be a function/)
    expect(() => Reflect.apply(onEvent, undefined, [() => undefined, { kind: ['break'] }])).toThrow(/unknown option 'kind'; did you mean 'kinds'/)
    expect(eventState.on).toBe(false)
  })
})

describe('places', () => {
  it('nest, and are left when what runs there throws', () => {
    const got: (number | null)[][] = []
    listen(({ fn, call, graph }) => got.push([fn, call, graph]), { kinds: ['break'] })
    inScope({ fn: 1, call: 2 }, () => {
      emit(aBreak)
      expect(() =>
        inScope({ graph: 3 }, () => {
          emit(aBreak)
          throw new Error('inside')
        }),
      ).toThrow('inside')
      emit(aBreak)
    })
    const before = enterScope({ call: 4 })
    emit(aBreak)
    leaveScope(before)
    expect(got).toEqual([
      [1, 2, null],
      [1, 2, 3],
      [1, 2, null],
      [null, 4, null],
    ])
    expect(currentScope()).toEqual({ fn: null, call: null, graph: null })
  })
})
