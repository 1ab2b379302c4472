// The part of Trusted Types that the console uses, which the DOM's types lack. createScriptURL is declared to
// return a string, because the constructor of Worker takes one.

interface TrustedScriptPolicy {
  createScriptURL(url: string): string
}

interface TrustedScriptPolicies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): TrustedScriptPolicy
}

interface Window {
  /** Undefined in browsers without Trusted Types. */
  readonly trustedTypes: TrustedScriptPolicies | undefined
}
