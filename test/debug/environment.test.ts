// Where a script was written, and what is different where it runs.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { differenceFrom, isSetting, writtenHere } from '../../src/debug/script/environment.ts'
import { VERSION } from '../../src/version.ts'

afterEach(() => vi.unstubAllGlobals())

interface Host {
  readonly version?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly execArgv?: readonly string[]
}

/** From here on, a process with these. */
function hostWith({ version = 'v20.1.0', env = {}, execArgv = [] }: Host): void {
  const process = { versions: { v8: '11.3' }, platform: 'beos', arch: 'ppc', execArgv }
  vi.stubGlobal('process', { version, env, getBuiltinModule: (name: string) => (name === 'node:process' ? process : undefined) })
}

const HERE = { tensorfx: VERSION, node: 'v20.1.0', v8: '11.3', platform: 'beos-ppc' }

describe('where a script is written', () => {
  it('are versions, flags and settings', () => {
    hostWith({})
    expect(writtenHere()).toEqual(HERE)
    const execArgv = ['--max-old-space-size=100']
    hostWith({
      execArgv,
      env: { PATH: '/bin', TENSORFX_Z: '1', TENSORFX_A: '', TENSORFX_GONE: undefined, TENSORFX_M: '2', TENSORFX_REPRO_AFTER: 'aot' },
    })
    const written = writtenHere()
    expect(written).toEqual({ ...HERE, execArgv, env: { TENSORFX_A: '', TENSORFX_M: '2', TENSORFX_Z: '1' } })
    expect(Object.keys(written.env ?? {})).toEqual(['TENSORFX_A', 'TENSORFX_M', 'TENSORFX_Z'])
    // A list of its own.
    expect(written.execArgv).not.toBe(execArgv)
  })

  it('is only the version of the library where nothing else is known', () => {
    for (const host of [undefined, {}, { version: 'v20.1.0' }, { getBuiltinModule: () => ({}) }]) {
      vi.stubGlobal('process', host)
      expect(writtenHere()).toEqual({ tensorfx: VERSION })
    }
  })

  it('has no environment where that may not be read, or is not there', () => {
    hostWith({ env: { TENSORFX_A: '1' } })
    const asked: unknown[] = []
    const deno = (state: string): void => void vi.stubGlobal('Deno', { permissions: { querySync: (what: unknown) => (asked.push(what), { state }) } })
    deno('denied')
    expect(writtenHere()).toEqual(HERE)
    deno('granted')
    expect(writtenHere()).toEqual({ ...HERE, env: { TENSORFX_A: '1' } })
    expect(asked).toEqual([{ name: 'env' }, { name: 'env' }])
    vi.stubGlobal('process', { ...process, version: 'v20.1.0', env: undefined })
    expect(writtenHere()).toEqual(HERE)
  })

  it('names settings, but none that make it write scripts, and no secrets', () => {
    const names = ['TENSORFX_', 'TENSORFX_LOGS', 'TENSORFX_REPRO_LEVELS', 'TENSORFX_REPRO_TOLERANCE', 'TENSORFX_REPRO_AFTERWARDS']
    expect(names.filter((name) => !isSetting(name))).toEqual([])
    const others = ['TENSORFX_REPRO_AFTER', 'TENSORFX_REPRO_LEVEL', 'MY_TENSORFX_LOGS', 'tensorfx_logs', 'TENSOR', '']
    const secrets = ['SECRET', 'TOKEN', 'PASSWORD', 'PASS', 'KEY', 'CREDENTIALS', 'api_key'].map((word) => `TENSORFX_${word}`)
    expect([...others, ...secrets].filter(isSetting)).toEqual([])
  })
})

describe('what is different', () => {
  it('is named with both values, flags and settings apart', () => {
    hostWith({})
    expect(differenceFrom(HERE)).toBeNull()
    expect(differenceFrom({ tensorfx: VERSION })).toBeNull()
    expect(differenceFrom({ ...HERE, execArgv: ['--other'], env: { TENSORFX_A: '1' } })).toBeNull()
    expect(differenceFrom({ ...HERE, v8: '9' })).toBe('the script was written with v8 9; here it runs with v8 11.3')
    expect(differenceFrom({ ...HERE, tensorfx: '0.0.0', platform: 'linux-x64' })).toBe(
      `the script was written with tensorfx 0.0.0, platform linux-x64; here it runs with tensorfx ${VERSION}, platform beos-ppc`,
    )
    vi.stubGlobal('process', undefined)
    expect(differenceFrom({ ...HERE })).toBe(
      'the script was written with node v20.1.0, v8 11.3, platform beos-ppc; here it runs with node none, v8 none, platform none',
    )
  })
})
