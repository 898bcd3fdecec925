// By what the rows of profiles are grouped and sorted.

/** What the rows of {@link KeyAverages} can stand for. */
export const profileGroups = ['operator', 'inputShape', 'kernel', 'module', 'node'] as const

/** What the rows of {@link KeyAverages} stand for. */
export type ProfileGroup = (typeof profileGroups)[number]

/** The columns by which tables can be sorted. */
export const profileColumns = ['selfTime', 'totalTime', 'calls', 'flops', 'bytes', 'allocations', 'memory', 'peak'] as const

/** A column by which a table can be sorted. */
export type ProfileColumn = (typeof profileColumns)[number]

/** Whether rows can stand for that. */
export const isProfileGroup = (name: unknown): name is ProfileGroup => profileGroups.some((group) => group === name)

/** Whether tables can be sorted by that. */
export const isProfileColumn = (name: unknown): name is ProfileColumn => profileColumns.some((column) => column === name)
