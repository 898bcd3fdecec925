// What of the options and the environment of a program its child processes get.
import { describe, expect, it } from 'vitest'
import { childEnv, childOptions } from '../../src/debug/isolate/childOptions.ts'

describe('the options of a child', () => {
  const WITH_VALUE = [
    ...['--eval', '--print', '-p', '-e', '-pe', '--input-type', '--inspect-port', '--debug-port', '--inspect-publish-uid', '--watch-path', '--run'],
    ...['--test-name-pattern', '--test-reporter', '--test-reporter-destination'],
    ...['--cpu-prof-dir', '--cpu-prof-name', '--cpu-prof-interval', '--heap-prof-dir', '--heap-prof-name', '--heap-prof-interval'],
  ]
  const ALONE = [
    ...['--inspect', '--inspect=9229', '--inspect-brk', '--inspect-wait=1', '--inspect-port=3', '--debug', '--debug-brk', '--eval=1', '--print=1'],
    ...['--interactive', '-i', '--check', '-c', '--test', '--test-reporter=tap', '--watch', '--watch-path=src', '--watch-preserve-output'],
    ...['--cpu-prof', '--cpu-prof-dir=x', '--heap-prof', '--heap-prof-dir=x', '--prof', '-'],
  ]

  it('are without those that only the program can have, and their values', () => {
    for (const option of WITH_VALUE) {
      expect([option, childOptions([option, 'value', '--kept'])]).toEqual([option, ['--kept']])
      // What begins with a dash is no value.
      expect([option, childOptions(['--first', option, '--kept', 'x'])]).toEqual([option, ['--first', '--kept', 'x']])
      expect(childOptions([option])).toEqual([])
    }
    for (const option of ALONE) expect([option, childOptions([option, 'kept', '--kept'])]).toEqual([option, ['kept', '--kept']])
  })

  it('are all others, as they are', () => {
    const others = [
      ...['-r', './hook.cjs', '--require', '--import', 'tsx', '--conditions=dev', '-C', '--max-old-space-size=64', '--title', '--enable-source-maps'],
      ...[
        '--evaluate',
        '--printer',
        '-px',
        '-ex',
        '-pex',
        '-ii',
        '-cc',
        '--interactively',
        '--checks',
        '--runner',
        '--no-inspect',
        'x--test',
        'a-',
        '',
        '--',
      ],
    ]
    expect(childOptions(others)).toEqual(others)
    for (const option of others) expect(childOptions([option])).toEqual([option])
  })
})

describe('the environment of a child', () => {
  it('is without the settings that write scripts', () => {
    const env = {
      TENSORFX_REPRO_AFTER: 'aot',
      TENSORFX_REPRO_LEVEL: '2',
      TENSORFX_REPRO: '',
      TENSORFX_LOGS: 'x',
      MY_TENSORFX_REPRO: 'y',
      PATH: undefined,
    }
    expect(childEnv(env)).toEqual({ TENSORFX_LOGS: 'x', MY_TENSORFX_REPRO: 'y', PATH: undefined })
    expect(childEnv({})).toEqual({})
  })

  it.each([
    ['', ''],
    ['--inspect', ''],
    ['--inspect-brk=1 --import tsx --inspect', '--import tsx'],
    ['  --debug  ', ''],
    ['--import tsx --inspect-port 9230', '--import tsx'],
    ['--inspect-publish-uid http --no-warnings', '--no-warnings'],
    ['--debug-port --no-warnings', '--no-warnings'],
    ['--inspect ./hook.cjs', './hook.cjs'],
    ['--no-inspect --x--inspect -r a--debug', '--no-inspect --x--inspect -r a--debug'],
  ])('has NODE_OPTIONS %j as %j', (options, left) => expect(childEnv({ NODE_OPTIONS: options })).toEqual({ NODE_OPTIONS: left }))
})
