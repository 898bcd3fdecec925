// Where a script was written: versions, flags of the runtime, and settings of tensorfx in the environment. What passes here and failed there may differ by these.
import { VERSION } from '../../version.ts'
import { hostProcess, isAllowed } from '../../protocol/index.ts'
import { nodeModule } from '../common/node.ts'

/** Where a script was written. Absent fields are unknown, as in a page. */
export interface Written {
  readonly tensorfx: string
  readonly node?: string
  readonly v8?: string
  readonly platform?: string
  /** Flags of Node, such as --max-old-space-size. */
  readonly execArgv?: readonly string[]
  /** Variables of the environment whose names begin with TENSORFX_. */
  readonly env?: Readonly<Record<string, string>>
}

/** Where this process runs. */
export function writtenHere(): Written {
  const host = hostProcess()
  const v8 = nodeModule('node:process')
  if (host?.version === undefined || v8 === null) return { tensorfx: VERSION }
  const { versions, platform, arch, execArgv } = v8
  const env = settings()
  return {
    tensorfx: VERSION,
    node: host.version,
    v8: versions.v8,
    platform: `${platform}-${arch}`,
    ...(execArgv.length === 0 ? {} : { execArgv: [...execArgv] }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
  }
}

/** The variables of tensorfx, but for those that make it write scripts, and those whose names sound like secrets. */
function settings(): Record<string, string> {
  if (!isAllowed({ name: 'env' })) return {}
  const variables = Object.entries(hostProcess()?.env ?? {})
  return Object.fromEntries(
    variables
      .flatMap(([key, value]) => (isSetting(key) && value !== undefined ? [[key, value]] : []))
      .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  )
}

/** Whether a variable is a setting that a script may name. */
export const isSetting = (key: string): boolean => /^TENSORFX_(?!REPRO_(AFTER|LEVEL)$)/.test(key) && !/SECRET|TOKEN|PASS|KEY|CREDENTIAL/i.test(key)

/** What is different here, as words; null if nothing is, or nothing is known. */
export function differenceFrom(written: Written): string | null {
  const here: Readonly<Record<string, unknown>> = { ...writtenHere() }
  const known = Object.entries(written).filter(([key]) => key !== 'env' && key !== 'execArgv')
  const other = known.filter(([key, value]) => here[key] !== value)
  if (other.length === 0) return null
  const list = (entries: readonly (readonly [string, unknown])[]): string => entries.map(([key, value]) => `${key} ${String(value)}`).join(', ')
  return `the script was written with ${list(other)}; here it runs with ${list(other.map(([key]) => [key, here[key] ?? 'none']))}`
}
