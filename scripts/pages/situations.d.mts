export function runSituations(folder: string): void
export function plantedLines(): ReadonlyMap<string, number>
