import type { DebuggerSetting } from './fuzz.d.mts'

export const settings: readonly DebuggerSetting[]
