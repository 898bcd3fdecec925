/** Comparisons of sizes by hand, as `src/ops/x.ts:12 a === b`. `overlay`: texts of files by path in the repository, in the place of what is there. */
export function comparisonsOfSizes(overlay?: Readonly<Record<string, string>>): readonly string[]
