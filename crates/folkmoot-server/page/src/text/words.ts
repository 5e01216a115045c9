import { createContext, useContext } from 'react';
import { chinese } from './chinese';
import { english, type Words } from './english';
import type { Locale } from './format';

/** The first of the reader's languages that the page speaks. */
export function localeOf(languages: readonly string[]): Locale {
  for (const language of languages) {
    if (/^zh\b/i.test(language)) return 'zh';
    if (/^en\b/i.test(language)) return 'en';
  }
  return 'en';
}

export function wordsOf(locale: Locale): Words {
  return locale === 'zh' ? chinese : english;
}

export interface Language {
  locale: Locale;
  words: Words;
}

export const LanguageContext = createContext<Language>({ locale: 'en', words: english });

export function useLanguage(): Language {
  return useContext(LanguageContext);
}
