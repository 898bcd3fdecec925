/** The files that typedoc makes pages of operators from, by name. */
export function operatorPages(): ReadonlyMap<string, string>
